# The image of the server. docs/operate/image.md says how to run it, and scripts/try_image.sh builds and tries it.
#
#     docker build -t wakeful .

FROM debian:trixie-slim AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends binutils ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

# The packages first: they change less often than the sources, and everything that is downloaded has a hash.
WORKDIR /src
COPY requirements.lock ./
COPY web/node.lock web/
RUN python3 -m venv /opt/wakeful \
    && /opt/wakeful/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements.lock \
    && /opt/wakeful/bin/pip install --no-cache-dir --no-compile --require-hashes --no-deps -r web/node.lock

# Build the page and install the server, then remove what only building needs, and debug symbols (15 MB).
COPY pyproject.toml README.md LICENSE ./
COPY scripts scripts
COPY web web
COPY src src
RUN /opt/wakeful/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . \
    && /opt/wakeful/bin/python scripts/runtime_packages.py --others > /tmp/others \
    && /opt/wakeful/bin/python -m pip uninstall --quiet --yes -r /tmp/others \
    && find /opt/wakeful -name '*.so' -exec strip --strip-debug {} +
# Bytecode of the modules that a server imports: it cannot write any itself, and starts sooner with it.
COPY deploy/image deploy/image
RUN /opt/wakeful/bin/python deploy/image/warm_up.py


FROM debian:trixie-slim
# tini passes signals on and ends orphaned processes of tools, which process 1 must do.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 tini \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/dpkg.log /var/log/apt \
    && useradd --uid 10001 --gid 0 --no-create-home --home-dir /data --shell /usr/sbin/nologin wakeful \
    && install -d -o 10001 -g 0 -m 0770 /data /config
COPY --from=build /opt/wakeful /opt/wakeful
COPY --from=build /src/deploy/image/healthcheck.py /opt/wakeful/

ENV PATH=/opt/wakeful/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    WAKEFUL_DATA_DIR=/data \
    WAKEFUL_CONFIG_DIR=/config \
    WAKEFUL_HOST=0.0.0.0 \
    WAKEFUL_PORT=8420 \
    WAKEFUL_HEALTH_PORT=8421
USER 10001:0
WORKDIR /data
VOLUME ["/data", "/config"]
EXPOSE 8420
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/opt/wakeful/bin/python", "-I", "/opt/wakeful/healthcheck.py"]
ENTRYPOINT ["tini", "--", "wakeful"]
CMD ["serve"]

LABEL org.opencontainers.image.title="Wakeful" \
      org.opencontainers.image.description="A server for agents that set their own alarm" \
      org.opencontainers.image.licenses="Apache-2.0"

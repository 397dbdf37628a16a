"""The health check of the image: exit 0 while the server fires wakes, else 1 with the reason.

It uses the port for probes, which needs neither a token nor TLS.
"""

import http.client
import os
import sys

port = int(os.environ.get("WAKEFUL_HEALTH_PORT", "8421"))
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4)
try:
    connection.request("GET", "/readyz")
    status = connection.getresponse().status
except OSError as error:
    sys.exit(f"The server does not answer on port {port}: {error}")
if status != 200:
    sys.exit(f"The server is not ready ({status}); `wakeful status` says why.")

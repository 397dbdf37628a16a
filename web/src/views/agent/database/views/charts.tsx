/** Charts in SVG, drawn at the size they are shown, so that labels have the size of other text. */

import type { ReactNode } from "react";
import { type Drawable, fittingLabels, positions, type Series, short, ticks } from "./series";
import { useWidth } from "./useWidth";
import "./charts.css";

const HEIGHT = 220;
const FOOT = 26;
const TOP = 10;
const COLOURS = 8; // more series than that repeat them
const MAX_BARS = 60;
const MAX_SLICES = 8;

const tone = (number: number) => `tone-${number % COLOURS}`;
/** Describe a chart for screen readers. */
function describe(kind: string, { names, series }: Drawable): string {
  const parts = names
    .slice(0, 20)
    .map((name, place) => `${name} ${series.map((each) => each.values[place] ?? "nothing").join(", ")}`);
  const more = names.length > 20 ? `, and ${names.length - 20} more` : "";
  return `${kind} of ${series.map((each) => each.name).join(", ")}: ${parts.join("; ")}${more}`;
}

function Legend({ series }: { series: Series[] }) {
  if (series.length < 2) return null;
  return (
    <ul className="legend" aria-hidden="true">
      {series.map((each, number) => (
        <li key={number}>
          <span className={`swatch ${tone(number)}`} />
          {each.name}
        </li>
      ))}
    </ul>
  );
}

interface Frame {
  left: number;
  width: number; // of the plot
  y: (value: number) => number;
}

interface AxesProps {
  kind: string;
  data: Drawable;
  x: ((frame: Frame) => (place: number) => number) | undefined; // the position of a label
  children: (frame: Frame) => ReactNode;
}

/** The grid lines and the labels of a chart. */
function Axes({ kind, data, x, children }: AxesProps) {
  const { ref, width } = useWidth();
  const values = data.series.flatMap((each) => each.values.filter((value) => value !== null));
  const low = Math.min(0, ...values);
  const steps = ticks(low, Math.max(0, ...values));
  const [bottom = 0, top = 1] = [steps[0], steps.at(-1)];
  const left = 12 + 7.5 * Math.max(...steps.map((step) => short(step).length));
  const frame: Frame = {
    left,
    width: Math.max(10, width - left - 8),
    y: (value) => TOP + (HEIGHT - TOP - FOOT) * (1 - (value - bottom) / (top - bottom)),
  };
  const place = x?.(frame) ?? ((number) => left + ((number + 0.5) * frame.width) / data.names.length);
  return (
    <div ref={ref} className="chart">
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={describe(kind, data)}>
          {steps.map((step) => (
            <g key={step}>
              <line
                className={step === 0 ? "axis" : "grid"}
                x1={left}
                x2={left + frame.width}
                y1={frame.y(step)}
                y2={frame.y(step)}
              />
              <text x={left - 6} y={frame.y(step) + 4} textAnchor="end">
                {short(step)}
              </text>
            </g>
          ))}
          {fittingLabels(data.names, place, width).map(({ name, at }) => (
            <text key={at} x={at} y={HEIGHT - 8} textAnchor="middle">
              {name}
            </text>
          ))}
          {children(frame)}
        </svg>
      )}
      <Legend series={data.series} />
    </div>
  );
}

export function Bars({ data }: { data: Drawable }) {
  const shown = {
    names: data.names.slice(0, MAX_BARS),
    series: data.series.map((each) => ({ ...each, values: each.values.slice(0, MAX_BARS) })),
  };
  const count = shown.series.length;
  return (
    <>
      <Axes kind="Bar chart" data={shown} x={undefined}>
        {({ left, width, y }) => {
          const room = width / shown.names.length;
          const bar = Math.min(56, (room * 0.76) / count);
          return shown.series.flatMap((series, number) =>
            series.values.map(
              (value, place) =>
                value !== null && (
                  <rect
                    key={`${number} ${place}`}
                    className={tone(number)}
                    x={left + (place + 0.5) * room + (number - count / 2) * bar}
                    width={Math.max(1, bar - 1)}
                    y={Math.min(y(value), y(0))}
                    height={Math.max(1, Math.abs(y(value) - y(0)))}
                    rx={2}
                  >
                    <title>{`${shown.names[place]}: ${value.toLocaleString()} ${series.name}`}</title>
                  </rect>
                ),
            ),
          );
        }}
      </Axes>
      {data.names.length > MAX_BARS && (
        <p className="muted small">
          The first {MAX_BARS} of {data.names.length.toLocaleString()}.
        </p>
      )}
    </>
  );
}

export function Lines({ data }: { data: Drawable }) {
  const found = positions(data.names);
  const order = data.names
    .map((_, place) => place)
    .sort((one, other) => (found ? (found[one] ?? 0) - (found[other] ?? 0) : one - other));
  const sorted = {
    names: order.map((place) => data.names[place] ?? ""),
    series: data.series.map((each) => ({ ...each, values: order.map((place) => each.values[place] ?? null) })),
  };
  const at = found && order.map((place) => found[place] ?? 0);
  const [first, last] = [at?.[0] ?? 0, at?.at(-1) ?? Math.max(1, sorted.names.length - 1)];
  const x = ({ left, width }: Frame) => {
    return (place: number) => left + 6 + ((width - 12) * ((at?.[place] ?? place) - first)) / (last - first);
  };
  return (
    <Axes kind="Line chart" data={sorted} x={x}>
      {(frame) =>
        sorted.series.map((series, number) => {
          const points = series.values.flatMap((value, place) =>
            value === null ? [] : [{ place, value, x: x(frame)(place), y: frame.y(value) }],
          );
          return (
            <g key={number} className={tone(number)}>
              <polyline className="line" points={points.map((point) => `${point.x},${point.y}`).join(" ")} />
              {points.map((point) => (
                <circle key={point.place} cx={point.x} cy={point.y} r={points.length > 40 ? 1.5 : 3.2}>
                  <title>{`${sorted.names[point.place]}: ${point.value.toLocaleString()} ${series.name}`}</title>
                </circle>
              ))}
            </g>
          );
        })
      }
    </Axes>
  );
}

const RADIUS = 78;

/** Shares of the first series, whose values must not be negative. */
export function Pie({ data }: { data: Drawable }) {
  const all = data.names
    .map((name, place) => ({ name, value: data.series[0]?.values[place] ?? 0 }))
    .filter((each) => each.value > 0)
    .sort((one, other) => other.value - one.value);
  const sum = all.reduce((before, each) => before + each.value, 0);
  const rest = all.length > MAX_SLICES ? all.slice(MAX_SLICES - 1) : [];
  const slices = rest.length
    ? [
        ...all.slice(0, MAX_SLICES - 1),
        { name: `${rest.length} others`, value: rest.reduce((before, each) => before + each.value, 0) },
      ]
    : all;
  let turned = 0;
  return (
    <div className="chart pie">
      <svg
        width={2 * RADIUS + 4}
        height={2 * RADIUS + 4}
        viewBox={`${-RADIUS - 2} ${-RADIUS - 2} ${2 * RADIUS + 4} ${2 * RADIUS + 4}`}
        role="img"
        aria-label={describe("Pie chart", data)}
      >
        {slices.map((slice, number) => {
          const from = turned;
          turned += slice.value / sum;
          return <path key={number} className={`slice ${tone(number)}`} d={wedge(from, turned)} />;
        })}
      </svg>
      <ul className="legend" aria-hidden="true">
        {slices.map((slice, number) => (
          <li key={number}>
            <span className={`swatch ${tone(number)}`} />
            <span className="legend-name">{slice.name}</span>
            <span className="muted number">{short(slice.value)}</span>
            <span className="muted number">{Math.round((100 * slice.value) / sum)} %</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Return the path of a slice between two fractions of the circle, clockwise from the top. */
function wedge(from: number, to: number): string {
  const point = (part: number) => `${RADIUS * Math.sin(2 * Math.PI * part)} ${-RADIUS * Math.cos(2 * Math.PI * part)}`;
  if (to - from > 0.9999)
    return `M 0 ${-RADIUS} A ${RADIUS} ${RADIUS} 0 1 1 0 ${RADIUS} A ${RADIUS} ${RADIUS} 0 1 1 0 ${-RADIUS} Z`;
  return `M 0 0 L ${point(from)} A ${RADIUS} ${RADIUS} 0 ${to - from > 0.5 ? 1 : 0} 1 ${point(to)} Z`;
}

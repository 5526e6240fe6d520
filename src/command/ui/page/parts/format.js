/**
 * Formats numbers, durations, times and sizes for the page. These functions need no browser.
 *
 * @example
 * ```js
 * number(4096) // "4,096"
 * number(99.12345) // "99.12"
 * tickTexts([0, 20_000, 40_000]) // ["0", "20k", "40k"]
 * duration(71.2) // "1 min 11 s"
 * ```
 */

const none = "–"

const isNumber = (value) => typeof value === "number" && Number.isFinite(value)

/** Formats a number with four significant digits, and an integer with all digits; commas separate thousands. */
export const number = (value) => {
  if (!isNumber(value)) return none
  const size = Math.abs(value)
  if (size !== 0 && size < 1e-3) return value.toExponential(2)
  const shown = Number.isInteger(value) ? value : size >= 1000 ? Math.round(value) : Number(value.toPrecision(4))
  return shown.toLocaleString("en", { maximumFractionDigits: 6 })
}

export const signed = (value) => (value > 0 ? "+" : "") + number(value)

/** Formats a count with its noun: "1 run", "1,000 runs". */
export const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`

const units = [
  { size: 1e9, letter: "G" },
  { size: 1e6, letter: "M" },
  { size: 1e3, letter: "k" },
]
const unitOf = (size) => units.find((unit) => size >= unit.size) ?? { size: 1, letter: "" }

/** Formats a tick in a unit with at most two decimals; undefined for a tick that needs more. */
const inUnit = (value, { size, letter }) => {
  const short = Number((value / size).toFixed(2))
  return Math.abs(short * size - value) <= 1e-9 * Math.abs(value)
    ? number(short) + (short === 0 ? "" : letter)
    : undefined
}

/**
 * Formats the ticks of an axis. All have the unit of the largest tick ("0", "2.5k", "5k"). If two decimals are too few for
 * that, each tick has its own unit ("100", "10k", "1M"). If they are still too few, numbers are written in full ("4,096").
 */
export const tickTexts = (ticks) => {
  const largest = unitOf(Math.max(0, ...ticks.map(Math.abs)))
  const ways = [ticks.map((tick) => inUnit(tick, largest)), ticks.map((tick) => inUnit(tick, unitOf(Math.abs(tick))))]
  return ways.find((texts) => !texts.includes(undefined)) ?? ticks.map(number)
}

export const duration = (seconds) => {
  if (!isNumber(seconds)) return none
  if (Number(seconds.toPrecision(3)) < 60) return `${Number(seconds.toPrecision(3))} s`
  const whole = Math.round(seconds)
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60]
  const parts = hours > 0 ? [`${number(hours)} h`, minutes > 0 && `${minutes} min`] : [`${minutes} min`, whole % 60 > 0 && `${whole % 60} s`] // prettier-ignore
  return parts.filter(Boolean).join(" ")
}

/** Formats a time from a run's identifier: `2026-01-31_12-00-00` becomes `2026-01-31 12:00:00`. */
export const time = (text) => text.replace(/_(\d\d)-(\d\d)-(\d\d)$/, " $1:$2:$3")

export const bytes = (size) => {
  const names = ["B", "kB", "MB", "GB", "TB"]
  let [value, unit] = [size, 0]
  // 999.9 kB would round to 1000 kB, so it is written as 1 MB.
  while (Number(value.toPrecision(3)) >= 1000 && unit < names.length - 1) [value, unit] = [value / 1000, unit + 1]
  return `${unit === 0 ? value : Number(value.toPrecision(3))} ${names[unit]}`
}

/** Encodes a path as a part of an address. */
export const segments = (path) => path.split("/").map(encodeURIComponent).join("/")

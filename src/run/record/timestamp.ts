/** Formats a time in milliseconds since 1970 as ISO 8601 in UTC, to the microsecond, for files of scores and calls. */
export const timestamp = (millis: number): string => {
  const whole = Math.floor(millis)
  const micros = String(Math.floor((millis - whole) * 1000)).padStart(3, "0")
  return `${new Date(whole).toISOString().slice(0, -1)}${micros}Z`
}

/** Defines the four directions on a field whose places are numbered row by row. */
export const directions = ["north", "east", "south", "west"] as const
export type Direction = (typeof directions)[number]

const short: Readonly<Record<string, Direction>> = { n: "north", e: "east", s: "south", w: "west" }

/** Returns the direction that an action names: `north`, `go north`, `Move north.`, `n`. */
export const directionOf = (action: string): Direction | undefined => {
  const plain = action.trim().toLowerCase().replace(/[.!]$/, "")
  const named = /^(?:(?:go|walk|move|head)\s+(?:to\s+the\s+)?)?(north|east|south|west|[nesw])$/.exec(plain)?.[1]
  return named === undefined ? undefined : (short[named] ?? directions.find((direction) => direction === named))
}

/** Returns the number of the neighbouring place in a direction; undefined if it lies outside the field. */
export const neighbour = (place: number, direction: Direction, width: number, height: number): number | undefined => {
  const column = place % width
  const row = Math.floor(place / width)
  switch (direction) {
    case "north":
      return row === 0 ? undefined : place - width
    case "south":
      return row === height - 1 ? undefined : place + width
    case "east":
      return column === width - 1 ? undefined : place + 1
    case "west":
      return column === 0 ? undefined : place - 1
  }
}

export const opposite: Readonly<Record<Direction, Direction>> = {
  north: "south",
  south: "north",
  east: "west",
  west: "east",
}

/** Joins names with commas and "and": "a", "a and b", "a, b and c". */
export const listed = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`

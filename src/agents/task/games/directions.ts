/** Defines the four directions on a field with places that are numbered row by row, and finds paths on it. */
export const directions = ["north", "east", "south", "west"] as const
export type CompassDirection = (typeof directions)[number]

/** Returns the direction that an action names: `north`, `go north`, `Move north.`, `n`. */
export const directionOf = (action: string): CompassDirection | undefined => {
  const plain = action.trim().toLowerCase().replace(/[.!]$/, "")
  const named = /^(?:(?:go|walk|move|head)\s+(?:to\s+the\s+)?)?(north|east|south|west|[nesw])$/.exec(plain)?.[1]
  return directions.find((direction) => direction[0] === named?.[0])
}

const steps = { north: [-1, 0], east: [0, 1], south: [1, 0], west: [0, -1] } as const

/** Returns the number of the neighbouring place in a direction; undefined if it lies outside the field. */
export const neighbour = (
  place: number,
  direction: CompassDirection,
  width: number,
  height: number,
): number | undefined => {
  const [down, right] = steps[direction]
  const row = Math.floor(place / width) + down
  const column = (place % width) + right
  return row < 0 || row >= height || column < 0 || column >= width ? undefined : row * width + column
}

export const opposite = { north: "south", south: "north", east: "west", west: "east" } as const

/**
 * Returns the only path without loops between two places, as steps. Each step has a direction and the place that it reaches.
 */
export const pathBetween = (
  from: number,
  to: number,
  waysOf: (place: number) => ReadonlyArray<readonly [CompassDirection, number]>,
): ReadonlyArray<readonly [CompassDirection, number]> => {
  const search = (place: number, previous: number): ReadonlyArray<readonly [CompassDirection, number]> | undefined => {
    if (place === to) return []
    for (const way of waysOf(place)) {
      const rest = way[1] === previous ? undefined : search(way[1], place)
      if (rest !== undefined) return [way, ...rest]
    }
    return undefined
  }
  return search(from, -1) ?? []
}

/** Joins names with commas and "and": "a", "a and b", "a, b and c". */
export const listed = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`

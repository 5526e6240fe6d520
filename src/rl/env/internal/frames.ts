/** Joins several observations to one, for `Wrapper.frameStack`. */
import { box, dict, sizeOf, type Space, tuple, type SpaceValue } from "../Space.ts"

/** Returns the space of `count` joined observations: only real numbers are joined. */
export const stackedSpace = (space: Space, count: number): Space => {
  switch (space._tag) {
    case "Box": {
      const { low, high, shape } = space
      const repeat = (bounds: ReadonlyArray<number>) => Array.from({ length: count }, () => bounds).flat()
      const isImage = shape.length === 3
      return box(repeat(low), repeat(high), isImage ? [count * shape[0], ...shape.slice(1)] : [count, ...shape])
    }
    case "Dict":
      return dict(
        Object.fromEntries(Object.entries(space.parts).map(([name, part]) => [name, stackedSpace(part, count)])),
      )
    case "Tuple":
      return tuple(...space.parts.map((part) => stackedSpace(part, count)))
    default:
      return space
  }
}

/** Joins observations, which are flat rows of numbers, oldest first. Reads each row from the index `offset` on. */
export const stackedValue = (space: Space, frames: ReadonlyArray<ReadonlyArray<number>>, offset = 0): SpaceValue => {
  const size = sizeOf(space)
  const partOf = (frame: ReadonlyArray<number>) => frame.slice(offset, offset + size)
  let at = offset
  const next = (part: Space): SpaceValue => {
    const value = stackedValue(part, frames, at)
    at += sizeOf(part)
    return value
  }
  switch (space._tag) {
    case "Box":
      return frames.flatMap(partOf)
    case "Dict":
      return Object.fromEntries(Object.entries(space.parts).map(([name, part]) => [name, next(part)]))
    case "Tuple":
      return space.parts.map(next)
    case "Discrete":
      return frames[frames.length - 1][offset]
    default:
      return partOf(frames[frames.length - 1])
  }
}

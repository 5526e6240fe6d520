/**
 * Makes moving pictures of episodes, whose frames are SVG documents. `gifOf` returns a GIF; `rawFrames` returns the pixels,
 * for programs such as ffmpeg that encode videos.
 */
import { Effect, Stream } from "effect"
import { FormatError } from "../FormatError.ts"
import { countColours, writeGif } from "./gif.ts"
import type { Picture } from "./Picture.ts"
import type { Frame, Movie } from "./frames.ts"
import { drawFrame } from "./tiles.ts"

/** The pictures of one episode. */
type Frames = ReadonlyArray<Frame>

/** The shortest time in hundredths of a second for which browsers show a picture of a GIF. */
const shortest = 2
/** The extra time in hundredths of a second for which a GIF shows the last picture of an episode. */
const pause = 50

interface Shown {
  readonly frame: Frame
  readonly hundredths: number
}

/**
 * Returns the pictures that a GIF shows, and how long it shows each. If there are more than 50 per second, it leaves
 * some out, but never the last one of an episode.
 */
export const timesOf = (episodes: ReadonlyArray<Frames>, speed: number): ReadonlyArray<Shown> => {
  const stride = Math.ceil((shortest * speed) / 100)
  return episodes.flatMap((frames) => {
    const last = frames.length - 1
    const indices = Array.from(frames.keys()).filter((index) => index % stride === 0 || index === last)
    // Round the start times, not the durations, so that the sum of the durations is right.
    const startOf = (index: number): number => Math.round((100 * index) / speed)
    return indices.map((index, at) => ({
      frame: frames[index],
      hundredths:
        Math.max(shortest, startOf(indices[at + 1] ?? index + stride) - startOf(index)) + (index === last ? pause : 0),
    }))
  })
}

/** Draws a picture, which must have the size of the others. */
const drawn = Effect.fnUntraced(function* (
  frame: Frame,
  size: { width: number; height: number } | undefined,
  side: number | undefined,
): Effect.fn.Return<Picture, FormatError> {
  const picture = yield* drawFrame(frame, side)
  if (size === undefined || (picture.width === size.width && picture.height === size.height)) return picture
  const found = `${picture.width} × ${picture.height}`
  return yield* new FormatError({
    message: `expected pictures of one size, ${size.width} × ${size.height}, found one of ${found}`,
  })
})

/**
 * Returns a GIF of episodes, one after another, at a speed in pictures per second. With `side`, the longer side has so many
 * pixels. The same pictures give the same bytes.
 */
export const gifOf = Effect.fnUntraced(function* (
  episodes: ReadonlyArray<Frames>,
  speed: number,
  side?: number,
): Effect.fn.Return<Uint8Array, FormatError> {
  const shown = timesOf(episodes, speed)
  const colours = countColours()
  let size: Picture | undefined
  // All pixels together would need too much memory, so draw each picture twice: for its colours, and for the file.
  for (const { frame } of shown) {
    const picture: Picture = yield* drawn(frame, size, side)
    size ??= picture
    colours.add(picture)
  }
  if (size === undefined) return yield* new FormatError({ message: "expected pictures, found none" })
  const gif = writeGif(size.width, size.height, colours)
  for (const { frame, hundredths } of shown) gif.add(yield* drawn(frame, size, side), hundredths)
  return gif.finish()
})

/** Returns the size of all pictures, and a stream of their pixels: red, green and blue of each, on white paper. */
export const rawFrames = Effect.fnUntraced(function* ({ frames, side }: Pick<Movie, "frames" | "side">) {
  if (frames.length === 0) return yield* new FormatError({ message: "expected pictures, found none" })
  const { width, height } = yield* drawn(frames[0], undefined, side)
  const pixels = Stream.mapEffect(Stream.fromIterable(frames), (frame) =>
    Effect.map(drawn(frame, { width, height }, side), onPaper),
  )
  return { width, height, pixels }
})

const onPaper = ({ rgba }: Picture): Uint8Array => {
  const rgb = new Uint8Array((rgba.length / 4) * 3)
  for (let from = 0, to = 0; from < rgba.length; from += 4) {
    const alpha = rgba[from + 3] / 255
    for (let channel = 0; channel < 3; channel++) {
      rgb[to++] = Math.round(rgba[from + channel] * alpha + 255 * (1 - alpha))
    }
  }
  return rgb
}

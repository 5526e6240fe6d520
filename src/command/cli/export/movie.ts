/** Exports episodes of a run's policy as an animation, for `effect export RUN --to gif` and `--to mp4`. */
import { Effect, FileSystem, Option, Path, Stream } from "effect"
import * as ChildProcess from "effect/process/ChildProcess"
import { FormatError } from "../../../base/formats/FormatError.ts"
import { joined } from "../../../base/config/bytes.ts"
import { mostBytes, readBytes } from "../../../base/config/files.ts"
import { oneLine, shortened } from "../../../base/config/text.ts"
import { utf8 } from "../../../base/config/utf8.ts"
import { gifOf, rawFrames } from "../../../base/formats/picture/movie.ts"
import type { Film } from "../../../rl/train/validate.ts"
import { usageError } from "../output/output.ts"
import { restored, type PolicyChoice } from "./policy.ts"

export const movieFormats = ["gif", "mp4"] as const
export type MovieFormat = (typeof movieFormats)[number]

/** The number of episodes to show, and the number of pictures per second. */
interface MovieOptions {
  readonly episodes: Option.Option<number>
  readonly speed: Option.Option<number>
}

/** Returns the bytes of an animation of the first episodes of a checkpoint's validation. */
export const movieFile = Effect.fnUntraced(function* (
  wanted: PolicyChoice,
  options: MovieOptions,
  format: MovieFormat,
) {
  const film = yield* filmed(wanted, options)
  const bytes = format === "gif" ? gifOf(film.episodes, film.speed) : videoOf(film)
  return yield* Effect.mapError(bytes, (error) =>
    error instanceof FormatError
      ? usageError(`${film.env} cannot be drawn by --to ${format}: ${error.message}`)
      : error,
  )
})

/** Plays the episodes, and returns their pictures. */
const filmed = Effect.fnUntraced(function* (wanted: PolicyChoice, { episodes, speed }: MovieOptions) {
  const none = {
    "validation.everySteps": 0,
    "render.everySteps": 0,
    ...(Option.isSome(speed) && { "render.speed": speed.value }),
    // Callbacks run only in a training, so their program is not needed.
    callbacks: [],
  }
  const { film } = yield* restored(wanted, none, { films: Option.getOrElse(episodes, () => 1) })
  if (film === undefined) return yield* usageError(`${wanted.run} has no policy that can play`)
  if (film.episodes.every((pictures) => pictures.length === 0)) {
    return yield* usageError(`${film.env} cannot be drawn: it has no renderSvg`)
  }
  return film
})

/** Encodes a video with the program ffmpeg, which has to be installed. */
const videoOf = Effect.fnUntraced(function* ({ episodes, speed }: Film) {
  const { width, height, pixels } = yield* rawFrames(episodes)
  const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "effect-rl-" })
  const file = (yield* Path.Path).join(folder, "movie.mp4")
  const input = [
    "-f",
    "rawvideo",
    "-pix_fmt",
    "rgb24",
    "-s",
    `${width}x${height}`,
    "-framerate",
    String(speed),
    "-i",
    "-",
  ]
  // Most players need this pixel format, which needs an even width and height. The file has no date, so that equal episodes
  // give equal files.
  const output = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
  const same = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact"]
  const args = ["-loglevel", "error", "-nostdin", ...input, ...output, ...same, "-f", "mp4", "-y", file]
  const ffmpeg = yield* Effect.mapError(ChildProcess.make("ffmpeg", args, { stdout: "ignore" }), () =>
    usageError("--to mp4 needs the program ffmpeg (https://ffmpeg.org); --to gif needs none"),
  )
  // If ffmpeg ends early, its own message says why; the pixels that it did not read do not matter.
  const fed = Effect.catch(Stream.run(pixels, ffmpeg.stdin), (error) =>
    error instanceof FormatError ? Effect.fail(error) : Effect.void,
  )
  const complaints = Effect.map(Stream.runCollect(ffmpeg.stderr), (chunks) => utf8.decode(joined(chunks)))
  const [, complaint, code] = yield* Effect.all([fed, complaints, ffmpeg.exitCode], { concurrency: 3 })
  if (code !== 0) return yield* usageError(`ffmpeg failed (exit code ${code}): ${shortened(oneLine(complaint), 300)}`)
  return yield* readBytes(file, mostBytes.binary)
}, Effect.scoped)

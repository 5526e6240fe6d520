/** Exports episodes of a run's policy as an animation, for `effect export RUN --to gif` and `--to mp4`. */
import { Effect, Option } from "effect"
import { FormatError } from "../../../base/formats/FormatError.ts"
import { encodeVideo } from "../../../base/formats/picture/ffmpeg.ts"
import { gifOf } from "../../../base/formats/picture/movie.ts"
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
  const bytes =
    format === "gif"
      ? gifOf(film.episodes, film.speed)
      : encodeVideo({ frames: film.episodes.flat(), speed: film.speed })
  return yield* Effect.mapError(bytes, (error) =>
    error instanceof FormatError ? usageError(`${film.env}: --to ${format}: ${error.message}`) : error,
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

/** Makes the videos of a training, by the service `VideoEncoder`. `stepFolder.ts` writes them. */
import { Context, Effect } from "effect"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { FormatError } from "../../../base/formats/FormatError.ts"
import { type Frame, type Movie, sideBySide, thinnedFrames } from "../../../base/formats/picture/frames.ts"
import * as Layout from "../../../run/Layout.ts"
import type { RenderOptions } from "../Settings.ts"

type VideoFormat = "gif" | "mp4"

/** Encodes videos. */
export interface VideoEncoderService {
  /** Fails if videos of a format cannot be encoded here, and says what is missing. */
  readonly check: (format: VideoFormat) => Effect.Effect<void, FormatError>
  readonly encode: (format: VideoFormat, movie: Movie) => Effect.Effect<Uint8Array, FormatError>
}

/**
 * The service that encodes videos. By default it fails, so that browsers need not load it; `effect-rl/node` provides GIFs,
 * and MP4s by the program ffmpeg.
 */
export const VideoEncoder = Context.Reference<VideoEncoderService>("effect-rl/train/VideoEncoder", {
  defaultValue: () => {
    const missing = new FormatError({
      message: "videos need the Layers of effect-rl/node, which this program does not provide",
    })
    return { check: () => missing, encode: () => missing }
  },
})

type VideoSettings = Required<RenderOptions>

/** Fails if the videos that a training wants cannot be made, before the training starts. */
export const checkVideos = Effect.fnUntraced(function* (envId: string, { video }: Pick<VideoSettings, "video">) {
  if (video === null) return
  const { check } = yield* VideoEncoder
  yield* Effect.mapError(check(video), ({ message }) => invalid(envId, `render.video: ${message}`))
})

/** Returns the pictures of each video: one of all episodes in tiles, or one for each episode. */
const videosOf = (
  episodes: ReadonlyArray<ReadonlyArray<string>>,
  { speed, tiled, maxFrames, size }: VideoSettings,
): ReadonlyArray<Movie> => {
  const all: ReadonlyArray<ReadonlyArray<Frame>> = tiled ? [sideBySide(episodes)] : episodes
  return all
    .filter(({ length }) => length > 0)
    .map((pictures) => {
      const { frames, stride } = thinnedFrames(pictures, maxFrames)
      return { frames, speed: speed / stride, side: size }
    })
}

/** Returns the files with the videos of these episodes, by their names in a step's folder. The same pictures give the same bytes. */
export const videoFiles = Effect.fnUntraced(function* (
  envId: string,
  episodes: ReadonlyArray<ReadonlyArray<string>>,
  settings: VideoSettings,
): Effect.fn.Return<Readonly<Record<string, Uint8Array>>, EnvError> {
  const { video } = settings
  if (video === null) return {}
  const { encode } = yield* VideoEncoder
  const files = yield* Effect.forEach(videosOf(episodes, settings), (movie, index) =>
    Effect.map(encode(video, movie), (bytes) => [Layout.inStep.videoOf(video, index), bytes] as const),
  ).pipe(Effect.mapError(({ message }) => invalid(envId, `its video cannot be made: ${message}`)))
  return Object.fromEntries(files)
})

/** Provides the videos of trainings: GIFs, and MP4s by the program ffmpeg. Their modules are loaded for the first video. */
import { Context, Effect, type FileSystem, Layer, type Path } from "effect"
import { VideoEncoder, type VideoEncoderService } from "./videos.ts"

const makeEncoder = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const loaded = yield* Effect.cached(
    Effect.gen(function* () {
      const [{ checkFfmpeg, encodeVideo }, { layer }] = yield* Effect.promise(() =>
        Promise.all([
          import("../../../base/formats/picture/ffmpeg.ts"),
          import("@effect/platform-node/NodeChildProcessSpawner"),
        ]),
      )
      const built = yield* Effect.provideContext(Layer.buildWithScope(layer, scope), context)
      return { checkFfmpeg, encodeVideo, all: Context.merge(context, built) }
    }),
  )
  const movies = Effect.promise(() => import("../../../base/formats/picture/movie.ts"))
  const service: VideoEncoderService = {
    check: (format) =>
      format === "gif"
        ? Effect.void
        : Effect.flatMap(loaded, ({ checkFfmpeg, all }) => Effect.provideContext(checkFfmpeg, all)),
    encode: (format, movie) =>
      format === "gif"
        ? Effect.flatMap(movies, ({ gifOf }) => gifOf([movie.frames], movie.speed, movie.side))
        : Effect.flatMap(loaded, ({ encodeVideo, all }) => Effect.provideContext(encodeVideo(movie), all)),
  }
  return service
})

export const layer = Layer.effect(VideoEncoder, makeEncoder)

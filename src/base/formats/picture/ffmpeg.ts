/** Encodes videos as MP4 files with the program ffmpeg, which has to be installed. */
import { Effect, FileSystem, Path, Stream } from "effect"
import * as ChildProcess from "effect/process/ChildProcess"
import { joined } from "../../text/bytes.ts"
import { mostBytes, readBytes } from "../../files/files.ts"
import { oneLine, shortened } from "../../text/text.ts"
import { utf8 } from "../../text/utf8.ts"
import { FormatError } from "../FormatError.ts"
import type { Movie } from "./frames.ts"
import { rawFrames } from "./movie.ts"

/** The message of a machine without ffmpeg. */
const needsFfmpeg = "mp4 needs the program ffmpeg (https://ffmpeg.org); gif needs none"

/** Fails if ffmpeg cannot be started. */
export const checkFfmpeg = Effect.gen(function* () {
  const program = yield* ChildProcess.make("ffmpeg", ["-version"], { stdin: "ignore", stdout: "ignore" })
  yield* program.exitCode
}).pipe(
  Effect.scoped,
  Effect.mapError(() => new FormatError({ message: needsFfmpeg })),
)

/** Returns the bytes of an MP4 file. The same pictures give the same bytes, by the same ffmpeg. */
export const encodeVideo = Effect.fnUntraced(
  function* (movie: Movie) {
    const { width, height, pixels } = yield* rawFrames(movie)
    const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "effect-rl-" })
    const file = (yield* Path.Path).join(folder, "movie.mp4")
    const size = `${width}x${height}`
    const input = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-framerate", String(movie.speed), "-i", "-"]
    // Most players need this pixel format, which needs an even width and height. The file has no date, so that equal episodes
    // give equal files.
    const output = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
    const same = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact"]
    const args = ["-loglevel", "error", "-nostdin", ...input, ...output, ...same, "-f", "mp4", "-y", file]
    const ffmpeg = yield* Effect.mapError(
      ChildProcess.make("ffmpeg", args, { stdout: "ignore" }),
      () => new FormatError({ message: needsFfmpeg }),
    )
    // If ffmpeg ends early, its own message says why; the pixels that it did not read do not matter.
    const fed = Effect.catch(Stream.run(pixels, ffmpeg.stdin), (error) =>
      error instanceof FormatError ? Effect.fail(error) : Effect.void,
    )
    const complaints = Effect.map(Stream.runCollect(ffmpeg.stderr), (chunks) => utf8.decode(joined(chunks)))
    const [, complaint, code] = yield* Effect.all([fed, complaints, ffmpeg.exitCode], { concurrency: 3 })
    if (code !== 0) {
      const message = `ffmpeg failed (exit code ${code}): ${shortened(oneLine(complaint), 300)}`
      return yield* new FormatError({ message })
    }
    return yield* readBytes(file, mostBytes.binary)
  },
  Effect.scoped,
  Effect.mapError((error) => (error instanceof FormatError ? error : new FormatError({ message: error.message }))),
)

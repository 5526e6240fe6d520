/**
 * The program of a process that compiles a module to a shared library, checks it, and prints the library's path.
 * `background-node.ts` starts it, so that a run neither waits for a compiler, nor ends if the library crashes in its check.
 */
import { readFileSync } from "node:fs"
import { deserialize } from "node:v8"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Schema } from "effect"
import { messageOf } from "../../base/text/text.ts"
import { unavailable } from "./compiler-node.ts"
import { checkCompiler, differs, functionsIn, libraryOf, loader } from "./libraries-node.ts"
import { Answer, Request } from "./machineCodeMessages.ts"
import { differenceOn } from "./widthCheck.ts"

const compiledLibrary = Effect.gen(function* () {
  const request = yield* Effect.try({
    try: () => Schema.decodeUnknownSync(Request)(deserialize(readFileSync(process.argv[2]))),
    catch: (error) => unavailable(`the program to compile cannot be read (${messageOf(error)})`),
  })
  const { compiled, content } = request
  const load = yield* loader
  yield* checkCompiler(request, load)
  const file = yield* libraryOf(compiled, request)
  if (content === undefined) return file
  // Compilers have bugs that show in some programs only.
  const difference = yield* differenceOn(content, compiled, (memory) => functionsIn(file, compiled, { load, memory }))
  return difference === undefined ? file : yield* differs(difference)
})

compiledLibrary.pipe(
  Effect.map((file) => ({ file })),
  Effect.catch(({ missing }) => Effect.succeed({ problem: missing })),
  Effect.flatMap((answer) => Effect.sync(() => void process.stdout.write(Schema.encodeSync(Answer)(answer)))),
  NodeRuntime.runMain,
)

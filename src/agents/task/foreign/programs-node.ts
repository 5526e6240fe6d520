/**
 * Provides the service for programs that simulate tasks in words. They are processes of this machine, which end with the
 * Layer.
 */
import { fileURLToPath } from "node:url"
import { Effect, Exit, Layer } from "effect"
import { utf8 } from "../../../base/text/utf8.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { connectTo, lines } from "../../../spread/programs/process-node.ts"
import { pooled, type StartProgram, TextPrograms } from "./TextPrograms.ts"

/** The length in bytes above which a line is not accepted as a reply. */
const longestLine = 2 ** 26

const start: StartProgram = ({ id, command, script, timeoutSeconds, variables }) =>
  Effect.map(
    connectTo(id, { command: [...command, ...pathsOf(script)], timeoutSeconds, variables }, lines)("its tasks"),
    ({ send }) =>
      (line) =>
        Effect.callback((resume) =>
          send(utf8.encode(`${line}\n`), longestLine, (reply) =>
            resume(reply instanceof EnvError ? Exit.fail(reply) : Exit.succeed(utf8.decode(reply.body))),
          ),
        ),
  )

const pathsOf = (script: string | undefined): ReadonlyArray<string> =>
  script === undefined ? [] : [fileURLToPath(new URL(script, import.meta.url))]

export const layer: Layer.Layer<never> = Layer.effect(TextPrograms, pooled(start))

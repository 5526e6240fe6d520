import { assert, it } from "@effect/vitest"
import { Console, Effect, Logger } from "effect"
import { harmlessConsole, Output, writeError, writeJson, writeOut } from "../../../../src/command/cli/output/output.ts"

it.effect("names in the texts of the command cannot control the terminal", () =>
  Effect.gen(function* () {
    const written: Array<string> = []
    const keep = (text: string): void => void written.push(text)
    const print = Effect.gen(function* () {
      const evil = "a\u001b]0;title\u0007b\u001b[1A\u001b[2Kc\rd\u009be\u007f\u202ef\u2066"
      yield* writeOut(`${evil}\n`)
      yield* writeError(`\u001b[33mwarning:\u001b[0m\t${evil}\r\n`)
      yield* writeJson({ evil })
    })
    yield* Effect.provideService(print, Output, { stdout: (text) => Effect.sync(() => keep(text)), stderr: keep })
    const cleaned = "a�]0;title�b�[1A�[2Kc�d�e��f�"
    assert.deepStrictEqual(written.slice(0, 2), [`${cleaned}\n`, `\u001b[33mwarning:\u001b[0m\t${cleaned}\r\n`])
    assert.isFalse(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(written[2]))
    assert.deepStrictEqual(JSON.parse(written[2]), {
      evil: "a\u001b]0;title\u0007b\u001b[1A\u001b[2Kc\rd\u009be\u007f\u202ef\u2066",
    })
  }),
)

it.effect("nor can they in a line of Effect's logger", () =>
  Effect.gen(function* () {
    const printed: Array<unknown> = []
    const console = Object.assign(Object.create(yield* Console.Console), {
      error: (...parts: ReadonlyArray<unknown>) => void printed.push(...parts),
    })
    yield* Effect.logWarning("a\u001b]0;title\u0007b").pipe(
      Effect.provide(Logger.layer([Logger.defaultLogger])),
      Effect.provideService(Logger.LogToStderr, true),
      Effect.provideService(Console.Console, harmlessConsole(console)),
    )
    assert.match(printed.join(" "), /a�\]0;title�b/)
    assert.notInclude(printed.join(" "), "\u001b]")
  }),
)

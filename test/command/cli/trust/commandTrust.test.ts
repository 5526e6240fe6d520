import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Output } from "../../../../src/command/cli/output/output.ts"
import { Asking } from "../../../../src/command/cli/trust/ask.ts"
import { ConfigsAreOwn, makeCommandTrust, TrustFlags } from "../../../../src/command/cli/trust/commandTrust.ts"
import { rememberedFolder } from "../../../../src/command/cli/trust/remembered.ts"
import type { ProgramStart, TrustRequest } from "../../../../src/base/trust/Trust.ts"
import { withVariables } from "../withVariables.ts"

const start = (more: Partial<ProgramStart> = {}): ProgramStart => ({
  _tag: "ProgramStart",
  place: "results/x/config.yaml:3: env.command",
  command: ["sh", "-c", "echo a b"],
  variables: [],
  input: { id: "x" },
  ...more,
})

interface Situation {
  /** The answer of the user; undefined if there is no terminal. */
  readonly answer?: boolean
  readonly isOwn?: boolean
  readonly trusts?: boolean
  readonly isSilent?: boolean
}

/** Gives a new folder of settings until the scope closes, and a function that asks as a new command does. */
const asking = Effect.gen(function* () {
  const home = mkdtempSync(join(tmpdir(), "effect-rl-trust-"))
  yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(home, { recursive: true, force: true })))
  yield* withVariables({ XDG_CONFIG_HOME: join(home, "deep/settings") })
  const questions: Array<string> = []
  const written: Array<string> = []
  const ask = (request: TrustRequest, { answer, isOwn = false, trusts = false, isSilent = false }: Situation = {}) =>
    Effect.flatMap(makeCommandTrust, (trust) => trust.permit(request)).pipe(
      Effect.as("permitted"),
      Effect.catchTag("Untrusted", ({ message }) => Effect.succeed(message)),
      Effect.provideService(ConfigsAreOwn, isOwn),
      Effect.provideService(TrustFlags, { trusts, isSilent }),
      Effect.provideService(Output, { stdout: () => Effect.void, stderr: (text) => void written.push(text) }),
      Effect.provideService(Asking, {
        isPossible: () => answer !== undefined,
        ask: (text) =>
          Effect.sync(() => {
            questions.push(text)
            return answer === true
          }),
      }),
    )
  const arrives = (request: TrustRequest) =>
    Effect.flatMap(makeCommandTrust, (trust) => Effect.exit(trust.permitKnown(request))).pipe(
      Effect.map((exit) => exit._tag === "Success"),
    )
  return { ask, arrives, questions, written }
})

describe("the trust of the command", () => {
  it.effect("asks once about the config of somebody else, and shows all that happens", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask, questions } = yield* asking
        assert.strictEqual(yield* ask(start({ variables: ["A_KEY"] }), { answer: true }), "permitted")
        assert.deepStrictEqual(questions, [
          'results/x/config.yaml:3: env.command would\n  start sh -c "echo a b"\n' +
            `  in the folder ${process.cwd()}\n  with the environment variables A_KEY\n  with the options {"id":"x"}\n` +
            "This config is not one of your own files. Permit it, now and whenever a config asks for exactly this? [y/N] ",
        ])
        assert.strictEqual(yield* ask(start({ variables: ["A_KEY"] }), { answer: false }), "permitted")
        assert.strictEqual(yield* ask(start({ variables: ["A_KEY"], place: "other.yaml" })), "permitted")
        assert.lengthOf(questions, 1)
      }),
    ),
  )

  it.effect("asks again if anything else is started, or elsewhere, or with other variables or options", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask } = yield* asking
        yield* ask(start(), { answer: true })
        for (const other of [
          { command: ["sh", "-c", "echo", "a b"] },
          { command: ["./sh", "-c", "echo a b"] },
          { cwd: "/" },
          { variables: ["A_KEY"] },
          { input: { id: "y" } },
        ]) {
          assert.match(yield* ask(start(other)), /not permitted before/, JSON.stringify(other))
        }
        assert.strictEqual(yield* ask(start()), "permitted")
      }),
    ),
  )

  it.effect("takes the order of keys and of variables for nothing, and Python in PATH for the same in any folder", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask } = yield* asking
        yield* ask(start({ input: { a: 1, b: 2 }, variables: ["A", "B"], isSameAnywhere: true }), { answer: true })
        const same = start({ input: { b: 2, a: 1 }, variables: ["B", "A"], isSameAnywhere: true })
        assert.strictEqual(yield* ask(same), "permitted")
        assert.strictEqual(yield* ask({ ...same, cwd: "/" }), "permitted")
        // With such a search path, Python's code may come from the folder in which it starts.
        for (const variables of [
          { PYTHONPATH: "." },
          { PYTHONPATH: ":/usr/lib" },
          { PATH: "bin:/usr/bin" },
          { PATH: "" },
          { LD_LIBRARY_PATH: "/usr/lib:" },
        ]) {
          const elsewhere = Effect.scoped(Effect.andThen(withVariables(variables), ask({ ...same, cwd: "/" })))
          assert.match(yield* elsewhere, /not permitted before/, JSON.stringify(variables))
        }
        assert.strictEqual(yield* ask({ ...same, cwd: "/" }), "permitted")
      }),
    ),
  )

  it.effect("fails with what to do, where nobody can be asked", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask, questions } = yield* asking
        const expected =
          'it would start sh -c "echo a b", which you have not permitted before; look at it, and if you trust it, repeat the command with --trust'
        assert.strictEqual(yield* ask(start()), expected)
        assert.strictEqual(yield* ask(start(), { answer: true, isSilent: true }), expected)
        assert.strictEqual(yield* ask(start(), { answer: false }), 'you did not permit it to start sh -c "echo a b"')
        assert.lengthOf(questions, 1)
      }),
    ),
  )

  it.effect("permits by --trust, says what, and remembers it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask, written } = yield* asking
        assert.strictEqual(yield* ask(start(), { trusts: true }), "permitted")
        assert.deepStrictEqual(written, [
          'note: results/x/config.yaml:3: env.command: --trust permits it to start sh -c "echo a b"\n',
        ])
        assert.strictEqual(yield* ask(start()), "permitted")
      }),
    ),
  )

  it.effect("remembers what the user's own files start, so that their runs ask nothing", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask, questions } = yield* asking
        assert.strictEqual(yield* ask(start(), { isOwn: true }), "permitted")
        assert.strictEqual(yield* ask(start()), "permitted")
        assert.lengthOf(questions, 0)
      }),
    ),
  )

  it.effect("lets a run that arrives in a trainer do only what is remembered", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask, arrives } = yield* asking
        assert.isFalse(yield* arrives(start()))
        yield* ask(start(), { isOwn: true })
        assert.isTrue(yield* arrives(start()))
      }),
    ),
  )

  it.effect("shows what would hide in a terminal, and asks about nothing that is too long to be read", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask, questions } = yield* asking
        const hiding = start({
          place: "results/\u001b[2K/config.yaml",
          command: ["sh", "-c", "evil\r\u001b[1A\u202eharmless\u200b\u00a0\u2028", "ls\n"],
          variables: ["A\u0007"],
          input: { text: "\u009b2J" },
        })
        yield* ask(hiding, { answer: false })
        assert.match(questions[0], /^[\x20-\x7e\n]+$/)
        assert.include(questions[0], String.raw`sh -c "evil\r\u001b[1A\u{202e}harmless\u{200b}\u{a0}\u{2028}" "ls\n"`)
        assert.include(questions[0], String.raw`results/\u{1b}[2K/config.yaml`)
        const line = yield* ask(hiding)
        assert.match(line, /^[\x20-\x7e]+$/)
        const long = start({ command: ["sh", "-c", `echo ${" ".repeat(5000)}; evil`] })
        const message = yield* ask(long, { answer: true })
        assert.match(message, /… \(50\d\d characters\).*too long to be shown.*--trust$/)
        assert.isBelow(message.length, 600)
        assert.lengthOf(questions, 1)
      }),
    ),
  )

  it.effect("believes and keeps nothing in the working directory, which an empty or relative HOME would mean", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask, written } = yield* asking
        for (const home of ["", "unpacked"]) {
          yield* withVariables({ XDG_CONFIG_HOME: "", HOME: home })
          assert.strictEqual(yield* ask(start(), { trusts: true }), "permitted")
          assert.include(written.at(-1), `cannot be remembered, so you will be asked again: HOME is "${home}"`)
          assert.match(yield* ask(start()), /not permitted before/)
          assert.isFalse(existsSync(join(home, ".config")))
        }
      }),
    ),
  )

  it.effect("keeps its memory where only the user can write, and believes no other", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { ask, written } = yield* asking
        yield* ask(start(), { answer: true })
        const folder = rememberedFolder()
        const [name] = readdirSync(folder)
        const file = join(folder, name)
        const modeOf = (path: string): number => lstatSync(path).mode & 0o777
        assert.deepStrictEqual([dirname(folder), folder, file].map(modeOf), [0o700, 0o700, 0o600])
        const isBelieved = Effect.map(ask(start()), (outcome) => outcome === "permitted")
        for (const path of [dirname(folder), folder, file]) {
          const mode = modeOf(path)
          for (const wrong of [0o020, 0o002]) {
            chmodSync(path, mode | wrong)
            assert.isFalse(yield* isBelieved, `${path} ${wrong}`)
            chmodSync(path, mode)
          }
          // Only root can give a file away.
          if (process.getuid?.() === 0) {
            chownSync(path, 12345, 0)
            assert.isFalse(yield* isBelieved, path)
            chownSync(path, 0, 0)
          }
          const elsewhere = `${dirname(dirname(folder))}-moved`
          renameSync(path, elsewhere)
          symlinkSync(elsewhere, path)
          assert.isFalse(yield* isBelieved, `a link in the place of ${path}`)
          rmSync(path)
          renameSync(elsewhere, path)
          assert.isTrue(yield* isBelieved)
        }
        rmSync(dirname(folder), { recursive: true })
        mkdirSync(dirname(folder), { mode: 0o700 })
        chmodSync(dirname(folder), 0o777)
        assert.strictEqual(yield* ask(start(), { answer: true }), "permitted")
        assert.match(written.join(""), /cannot be remembered, so you will be asked again: .*only you can write to/)
        assert.isFalse(yield* isBelieved)
      }),
    ),
  )
})

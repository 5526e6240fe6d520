import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Option } from "effect"
import { CliOutput, type Command, Command as Commands, type HelpDoc } from "effect/cli"
import { root as loadRoot } from "../../../../src/command/cli/command.ts"
import { helpText } from "../../../../src/command/cli/output/help.ts"
import { root } from "../effect.ts"

const effect = await Effect.runPromise(loadRoot())

/** The help of a command as `effect … --help` presents it. */
const docOf = (path: ReadonlyArray<string>): Effect.Effect<HelpDoc.HelpDoc> =>
  Effect.gen(function* () {
    let doc: HelpDoc.HelpDoc | undefined
    const present: CliOutput.Presenter["present"] = (event) =>
      Effect.sync(() => void (doc = event._tag === "Help" ? event.helpDoc : undefined))
    yield* Commands.runWith(effect, { version: "0.0.0" })([...path, "--help"]).pipe(
      Effect.provide([NodeServices.layer, CliOutput.layerPresenter({ present })]),
      Effect.orDie,
    )
    assert(doc !== undefined)
    return doc
  })

const pathsBelow = (
  command: Command.Command.Any,
  path: ReadonlyArray<string>,
): ReadonlyArray<ReadonlyArray<string>> => [
  path,
  ...command.subcommands.flatMap(({ commands }) => commands.flatMap((one) => pathsBelow(one, [...path, one.name]))),
]
const paths = pathsBelow(effect, [])

const tooWide = (text: string, width: number): ReadonlyArray<string> =>
  text.split("\n").filter((line) => CliOutput.displayWidth(line) > width)

describe("the help of the command", () => {
  it("covers every subcommand", () => {
    assert.deepStrictEqual(
      paths.map((path) => path.join(" ")),
      [
        "",
        "init",
        "presets",
        "run",
        "tune",
        "eval",
        "replay",
        "export",
        "import",
        "push",
        "runs",
        "runs show",
        "runs diff",
        "runs compare",
        "runs best",
        "runs texts",
        "runs rename",
        "runs note",
        "runs tag",
        "runs archive",
        "runs delete",
        "ui",
        "serve",
        "gateway",
        "openenv",
        "orchestrate",
        "worker",
      ],
    )
  })

  for (const path of paths) {
    const name = ["effect", ...path].join(" ")

    it.effect(`${name} --help fits into the terminal, and describes all arguments and flags in one column`, () =>
      Effect.gen(function* () {
        const doc = yield* docOf(path)
        for (const width of [60, 80, 200]) {
          assert.deepStrictEqual(tooWide(helpText(doc, { width, colors: false }), Math.min(width, 100)), [])
        }
        const text = helpText(doc, { width: 80, colors: false })
        const at = (title: string): ReadonlyArray<number> => {
          const [, section = ""] = new RegExp(`(?:^|\n\n)${title}\n([^]*?)(?:\n\n|$)`).exec(text) ?? []
          return Array.from(section.matchAll(/^ {2}-.*? {2,}(?=\S)/gm), ([before]) => before.length)
        }
        const columns = new Set(at("FLAGS"))
        assert.isAtMost(columns.size, 1, text)
        for (const column of columns) assert.isAtMost(column, 30)
        for (const one of [...(doc.args ?? []), ...doc.flags]) {
          assert.notStrictEqual(
            Option.getOrElse(one.description, () => ""),
            "",
            one.name,
          )
        }
        assert.notMatch(text, /[^\n]\n[A-Z][A-Z ]{4,}\n/, "an empty line stands before every heading")
      }),
    )

    it.effect(`${name} --help has examples of the command`, () =>
      Effect.gen(function* () {
        const { examples = [] } = yield* docOf(path)
        assert.isAbove(examples.length, 0)
        for (const { command, description } of examples) {
          assert.isTrue(command.startsWith(name), command)
          assert.isDefined(description)
        }
      }),
    )
  }
})

/** The flags of each command that a text shows, as `effect run --seed`; what follows a pipe is another program's. */
const flagsShown = (text: string): ReadonlyArray<readonly [string, string]> =>
  Array.from(text.matchAll(/\beffect ((?:init|run|eval|replay|export|push|runs|ui)\b[^|`\n]*)/g), ([, words]) => {
    const name = paths.findLast((path) => path.length > 0 && `${words} `.startsWith(`${path.join(" ")} `))?.join(" ")
    const shown = words.replace(/ #.*/, "").match(/(?<= )--[a-z][a-z-]*/g) ?? []
    return shown.map((flag) => [name ?? "", flag] as const)
  }).flat()

describe("documents", () => {
  it.effect("show only flags that their commands have", () =>
    Effect.gen(function* () {
      const known = new Map<string, ReadonlyArray<string>>()
      for (const path of paths) {
        const { flags, inheritedFlags = [], globalFlags = [] } = yield* docOf(path)
        known.set(
          path.join(" "),
          [...flags, ...inheritedFlags, ...globalFlags].map(({ name }) => `--${name}`),
        )
      }
      const files = ["README.md", "CONTRIBUTING.md", ...globSync("docs/*.md", { cwd: root })]
      const shown = files.flatMap((file) => flagsShown(readFileSync(join(root, file), "utf8")))
      assert.isAbove(shown.length, 20)
      assert.deepStrictEqual(
        shown.filter(([name, flag]) => known.get(name)?.includes(flag) !== true),
        [],
      )
    }),
  )
})

describe("helpText", () => {
  const doc: HelpDoc.HelpDoc = {
    description: "Copy files from one place to another, and check that nothing was lost on the way.",
    usage: "copy [flags] <from> [<to>]",
    commandPath: ["tool", "copy"],
    annotations: Context.empty(),
    args: [
      { name: "from", type: "string", description: Option.some("The source"), required: true, variadic: true },
      { name: "to", type: "string", description: Option.some("The target"), required: false, variadic: false },
    ],
    flags: [
      { name: "force", aliases: ["-f"], type: "boolean", description: Option.some("Overwrite"), required: false },
      {
        name: "times",
        aliases: [],
        type: "integer",
        description: Option.some("How often a copy is tried again when it fails"),
        required: false,
      },
      {
        name: "when-it-is-too-long",
        aliases: [],
        type: "a-long-value",
        description: Option.some("A description"),
        required: true,
      },
    ],
    globalFlags: [
      { name: "help", aliases: ["-h"], type: "boolean", description: Option.some("Show help"), required: false },
    ],
    examples: [
      { command: "tool copy one.txt two.txt three.txt 'a name with spaces' folder", description: "Copy some files" },
      { command: "tool copy a b", description: "Copy one" },
    ],
  }

  it("wraps texts, aligns descriptions, and continues long commands as a shell reads them", () => {
    assert.strictEqual(
      helpText(doc, { width: 60, colors: false }),
      String.raw`DESCRIPTION
  Copy files from one place to another, and check that
  nothing was lost on the way.

USAGE
  copy [flags] <from> [<to>]

ARGUMENTS
  <from>…  The source
  <to>     The target (optional)

FLAGS
  --force, -f                 Overwrite
  --times <n>                 How often a copy is tried
                              again when it fails
  --when-it-is-too-long <a-long-value>
                              A description

FLAGS OF EVERY COMMAND
  --help (see effect --help)

EXAMPLES
  # Copy some files
  tool copy one.txt two.txt three.txt 'a name with spaces' \
    folder

  # Copy one
  tool copy a b`,
    )
  })

  it("sets headings in bold where the terminal has colours", () => {
    assert.isTrue(helpText(doc, { width: 80, colors: true }).startsWith("\u001b[1mDESCRIPTION\u001b[0m\n"))
  })
})

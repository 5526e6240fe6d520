/** Defines `effect init`, which writes a file to start from, and the other files that a new project lacks. */
import { fileURLToPath } from "node:url"
import { Effect, FileSystem, Option, Path } from "effect"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { makeFolder, mostBytes, type PlatformFailure, readText, systemMessage } from "../../../base/files/files.ts"
import { argument, quoted, subcommand, text as textFlag, toggle } from "../flags.ts"
import { usageError, writeError, writeOut } from "../output/output.ts"
import type { Preset } from "../../../rl/presets/Presets.ts"
import { presetOf } from "../presets/packaged.ts"
import { files, type ProjectKind, kinds } from "./files.ts"
import { presetInitFile } from "./preset.ts"
import { startProject } from "./project.ts"

export const init = subcommand(
  "init",
  {
    description: "Write a commented file to start from. It runs as it is, without an API key.",
    examples: {
      "effect init": "Write experiment.yaml: an agent that learns from feedback",
      "effect init quiz.yaml --kind questions": "Write an experiment with your own questions",
      "effect init --kind evaluation": "Write evaluation.yaml: agents compared on the same tasks",
      "effect init train.ts":
        "Write a reinforcement learning program, and package.json and tsconfig.json where they are missing",
      "effect init --preset ppo/HalfCheetah-v5": "Write tuned settings, which effect presets lists, into a new folder",
    },
  },
  {
    file: argument("file", "The file to write: .yaml, or .ts for a program (default: named after its kind)").pipe(
      Argument.optional,
    ),
    kind: Flag.Literals("kind", kinds).pipe(
      Flag.optional,
      Flag.withDescription(
        `${kinds.map((kind) => `${kind}: ${files[kind].about}`).join("; ")}. Default: experiment, or program for a .ts file`,
      ),
    ),
    preset: textFlag(
      "preset",
      "algorithm/env",
      "Write a training with tuned settings, such as ppo/HalfCheetah-v5: effect presets lists them",
    ),
    force: toggle("force", "Overwrite an existing file"),
  },
  Effect.fnUntraced(function* (input) {
    const [fs, paths] = [yield* FileSystem.FileSystem, yield* Path.Path]
    const kind = yield* kindOf(input)
    const preset = Option.isNone(input.preset) ? undefined : yield* presetOf(input.preset.value)
    const { file: defaultFile, about, command, schema, text } = yield* initFileOf(kind, preset)
    const file = Option.getOrElse(input.file, () => defaultFile)
    const folder = paths.dirname(paths.resolve(file))
    const installedSchema = schema === null ? undefined : yield* schemaNear(folder, schema)
    const schemaLine = schema === null ? "" : `# yaml-language-server: $schema=${installedSchema ?? schema}\n`
    yield* Effect.mapError(makeFolder(folder), ({ message }) => usageError(`${file}: ${message}`))
    const contents = `${schemaLine}${text.replace("FILE_NAME", quoted([file]))}`
    yield* fs.writeFileString(file, contents, { flag: input.force ? "w" : "wx" }).pipe(
      Effect.catchIf(
        (error) => error.reason._tag === "AlreadyExists",
        () => Effect.fail(usageError(`${file}: this file exists already; --force overwrites it`)),
      ),
      Effect.catchTag("PlatformError", (error) => {
        return Effect.fail(usageError(`${file}: ${systemMessage(error)}`))
      }),
    )
    // npx keeps packages in a cache, and no file should depend on a path there, so the schema is copied next to the file.
    if (schema !== null && installedSchema === undefined) yield* copySchema(folder, schema, { replaces: input.force })
    const working = paths.resolve(".")
    // The printed commands are meant for the working directory if the file is below it, otherwise for the file's folder.
    const isBelow = folder === working || folder.startsWith(`${working}${paths.sep}`)
    const place = isBelow ? working : folder
    const packageFolder = paths.dirname(packaged)
    const { written, install } = yield* startProject(place, { packageFolder, isProgram: kind === "program" })
    const isHere = isBelow || install.length === 0
    const commands = [
      ...(isHere ? [] : [`cd ${quoted([place])}`]),
      ...install,
      ...(preset?.needs === undefined ? [] : [preset.needs.install]),
      `npx effect ${command} ${quoted([isHere ? file : paths.basename(file)])}`,
    ]
    const project = written.length === 0 ? "" : `wrote ${written.join(" and ")}: there was no such file\n`
    const steps = commands.map((line) => `  ${line}\n`).join("")
    yield* writeOut(`${project}wrote ${file}: ${about}. Run it with\n\n${steps}`)
  }),
)

interface InitChoice {
  readonly file: Option.Option<string>
  readonly kind: Option.Option<ProjectKind>
  readonly preset: Option.Option<string>
}

/**
 * Returns the kind of file to write: the value of `--kind`, otherwise the kind that fits the ending of the name. Fails if
 * they conflict.
 */
const kindOf = ({ file, kind, preset }: InitChoice) => {
  const name = Option.getOrUndefined(file)
  const isProgram = name !== undefined && /\.[mc]?[tj]s$/.test(name)
  const config = Option.isSome(preset) ? "training" : "experiment"
  const wanted = Option.getOrElse(kind, (): ProjectKind => (isProgram ? "program" : config))
  const extensions = wanted === "program" ? [".ts", ".mts"] : [".yaml", ".yml"]
  if (name === undefined || extensions.some((extension) => name.endsWith(extension))) return Effect.succeed(wanted)
  const expected = Option.isNone(kind) && !isProgram ? ".yaml, .yml or .ts" : extensions.join(" or ")
  return Effect.fail(usageError(`${name}: expected a name that ends in ${expected}`))
}

/** Returns the file to write, which is a training or a program if there is a preset. */
const initFileOf = Effect.fnUntraced(function* (kind: ProjectKind, preset: Preset | undefined) {
  if (preset === undefined) return files[kind]
  if (kind === "training" || kind === "program") return presetInitFile(preset, kind)
  return yield* usageError(`--kind ${kind}: a preset is a training or a program; leave --kind or --preset out`)
})

/** The folder of the JSON Schemas in the package (or checkout) of this library. */
const packaged = fileURLToPath(new URL("../../../../schemas", import.meta.url))

/**
 * Copies a JSON Schema of the package into a folder. If the folder has a file or a link of that name, it stays, with a note,
 * unless the copy `replaces` it: it may be the user's own, and a link may lead to another file.
 */
const copySchema = Effect.fnUntraced(function* (folder: string, schema: string, how: { readonly replaces: boolean }) {
  const [fs, paths] = [yield* FileSystem.FileSystem, yield* Path.Path]
  const [from, to] = [paths.join(packaged, schema), paths.join(folder, schema)]
  const failing = Effect.mapError((error: PlatformFailure) => usageError(`${to}: ${systemMessage(error)}`))
  const text = yield* failing(readText(from, mostBytes.text))
  const copy = fs.writeFileString(to, text, { flag: "wx" })
  if (how.replaces) return yield* failing(Effect.andThen(fs.remove(to, { force: true }), copy))
  const isCopied = yield* copy.pipe(
    Effect.as(true),
    Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.succeed(false)),
    failing,
  )
  if (isCopied || (yield* Effect.orElseSucceed(readText(to, mostBytes.text), () => "")) === text) return
  yield* writeError(`${to}: kept, although it differs from the schema of this version; --force replaces it\n`)
})

/**
 * Finds the library in a folder or above it. Returns the path of the library's JSON Schema, relative to the folder; undefined
 * if the library isn't there.
 */
const schemaNear = Effect.fnUntraced(function* (folder: string, name: string) {
  const [fs, paths] = [yield* FileSystem.FileSystem, yield* Path.Path]
  const relative = (to: string): string => paths.relative(folder, to).replaceAll("\\", "/")
  for (let above = folder; ; above = paths.dirname(above)) {
    const installed = paths.join(above, "node_modules/effect-rl/schemas", name)
    if (yield* fs.exists(installed)) return relative(installed)
    if (paths.join(above, "schemas") === packaged) return relative(paths.join(packaged, name))
    if (paths.dirname(above) === above) return undefined
  }
})

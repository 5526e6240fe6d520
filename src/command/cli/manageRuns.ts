/** Defines the subcommands of `effect runs` that change what is kept about runs: rename, note, tag, archive and delete. */
import { isAbsolute, resolve } from "node:path"
import { Effect, Option } from "effect"
import * as Argument from "effect/cli/Argument"
import { visible } from "../../base/text/text.ts"
import type { LabelChange } from "../../run/manage/labels.ts"
import { bytesText } from "../../run/find/table.ts"
import { owner } from "../../run/store/owner-node.ts"
import { findRun, findRunToDelete, readRun, readRunIn, warningSource } from "./findRun.ts"
import * as Flags from "./flags.ts"
import { usageError, writeError, writeOut } from "./output/output.ts"
import { Asking } from "./trust/ask.ts"

const { lookupDir: resultsDir } = Flags
const aRun = Flags.argument("run", Flags.runArgument)
const runsToDelete = Flags.argument(
  "run",
  "A run's folder; without --yes, also latest, a title or the end of a path",
).pipe(Argument.variadic({ min: 1 }))
const someRuns = Flags.argument("run", `${Flags.runArgument}; more runs may follow`).pipe(Argument.variadic({ min: 1 }))

const refuseBucket = Effect.fnUntraced(function* (wanted: string, folder: string) {
  if (Flags.isBucket(wanted) || Flags.isBucket(folder))
    return yield* usageError(`${wanted}: runs in a bucket can only be read; change a run in a folder`)
})

/** Finds the run on disk that the user named. */
const runOnDisk = Effect.fnUntraced(function* (wanted: string, folder: string) {
  yield* refuseBucket(wanted, folder)
  return yield* findRun(wanted, { folders: [folder] })
})

// What changes runs is loaded only when it is needed, so that the other subcommands start fast.
const changeLabels = Effect.fnUntraced(function* (path: string, change: LabelChange) {
  const { changeLabelsOf } = yield* Effect.promise(() => import("../../run/manage/labelsFile.ts"))
  return yield* changeLabelsOf(path, change)
})

/** Changes the labels of the run that the user named, and returns its path with the new labels. */
const changing = Effect.fnUntraced(function* (wanted: string, folder: string, change: LabelChange) {
  const { path } = yield* runOnDisk(wanted, folder)
  return { path, labels: yield* changeLabels(path, change) }
})

const rename = Flags.subcommand(
  "rename",
  {
    description:
      "Give a run a title, which tables and the page show in place of its name. The folder keeps its name, so that the run can still be resumed and every path to it stays valid.",
    short: "Give a run a title",
    examples: {
      'effect runs rename latest "PPO with a larger network"': "Show the newest run under this title",
      'effect runs rename ppo/0003 ""': "Show the run under its own name again",
    },
  },
  { run: aRun, title: Flags.argument("title", "The title, in one line; an empty one removes it"), resultsDir },
  Effect.fnUntraced(function* ({ run, title, resultsDir }) {
    const { path, labels } = yield* changing(run, resultsDir, { title })
    yield* writeOut(
      labels.title === undefined ? `${visible(path)} has no title\n` : `${visible(path)}: ${labels.title}\n`,
    )
  }),
)

const note = Flags.subcommand(
  "note",
  {
    description: "Write a note about a run, or print the one that it has.",
    short: "Write or print a note about a run",
    examples: {
      'effect runs note latest "The learning rate is too high."': "Replace the note about the newest run",
      "effect runs note ppo/0003": "Print the note",
      'effect runs note ppo/0003 ""': "Remove the note",
    },
  },
  {
    run: aRun,
    text: Flags.argument("text", "The note; an empty one removes it").pipe(Argument.optional),
    resultsDir,
  },
  Effect.fnUntraced(function* ({ run, text, resultsDir }) {
    if (Option.isSome(text)) {
      const { path, labels } = yield* changing(run, resultsDir, { note: text.value })
      return yield* writeOut(`${visible(path)} ${labels.note === undefined ? "has no note" : "has a new note"}\n`)
    }
    const { note } = yield* readRun(yield* runOnDisk(run, resultsDir)).labels
    if (note !== undefined) yield* writeOut(`${note}\n`)
  }),
)

const tag = Flags.subcommand(
  "tag",
  {
    description: "Add tags to a run, or remove them, and print all tags that it has then.",
    short: "Add tags to a run, or remove them",
    examples: {
      "effect runs tag latest baseline paper": "Add two tags to the newest run",
      "effect runs tag ppo/0003 --remove paper": "Remove a tag",
    },
  },
  {
    run: aRun,
    tags: Flags.argument("tag", "A tag to add: a word").pipe(Argument.variadic()),
    remove: Flags.texts("remove", "tag", "A tag to remove; can be repeated"),
    resultsDir,
  },
  Effect.fnUntraced(function* ({ run, tags, remove, resultsDir }) {
    const { path, labels } = yield* changing(run, resultsDir, { addTags: tags, removeTags: remove })
    yield* writeOut(`${visible(path)}: ${labels.tags === undefined ? "no tags" : labels.tags.join(" ")}\n`)
  }),
)

const archive = Flags.subcommand(
  "archive",
  {
    description:
      "Archive runs: lists and the page leave them out unless they are asked for them, and latest means another run. Nothing else changes.",
    short: "Leave runs out of lists",
    examples: {
      "effect runs archive ppo/0003 ppo/0004": "Archive two runs",
      "effect runs archive ppo/0003 --undo": "List the run again",
    },
  },
  { runs: someRuns, undo: Flags.toggle("undo", "List the runs again"), resultsDir },
  Effect.fnUntraced(function* ({ runs, undo, resultsDir }) {
    const paths = yield* Effect.forEach(runs, (run) => Effect.map(runOnDisk(run, resultsDir), ({ path }) => path))
    for (const path of new Set(paths)) {
      const { archived } = yield* readRunIn(path).labels
      if (undo && archived !== true) {
        yield* writeOut(`${visible(path)} was not archived\n`)
        continue
      }
      yield* changeLabels(path, { archived: !undo })
      yield* writeOut(`${visible(path)} is ${undo ? "no longer archived" : "archived"}\n`)
    }
  }),
)

/** Returns the paths outside of a run's folder to which its config moves files, which are not deleted with the run. */
const outsideOf = (places: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.values(places).filter((place) => isAbsolute(place) || place.split("/")[0] === "..")

const remove = Flags.subcommand(
  "delete",
  {
    description:
      "Delete the folders of runs with everything in them, after a question. Name a run by its folder, by latest, by its title, or by whole folder names at the end of its path; with --yes, only by the path of its folder. A run that is being written is not deleted, nor a run of a sweep or a trainer that is in progress.",
    short: "Delete runs",
    examples: {
      "effect runs delete CartPole-v1_ppo/0003": "Show the run's folder and its size, and ask",
      "effect runs delete results/…/0003 results/…/0004 --yes": "Delete two runs without a question, in a script",
    },
  },
  { runs: runsToDelete, yes: Flags.toggle("yes", "Do not ask"), resultsDir },
  Effect.fnUntraced(function* ({ runs, yes, resultsDir }) {
    const entries = yield* Effect.forEach(runs, (run) =>
      Effect.andThen(refuseBucket(run, resultsDir), findRunToDelete(run, { folders: [resultsDir], isAsked: !yes })),
    )
    const byPath = new Map(entries.map((entry) => [resolve(entry.path), entry]))
    const paths = [...byPath.keys()]
    if (!yes) {
      const { isPossible, ask } = yield* Asking
      if (!isPossible())
        return yield* usageError("delete asks before it deletes, and nobody can answer here; add --yes to delete")
      const lines = yield* Effect.forEach(paths, (path) =>
        Effect.map(warningSource.tree(path), (files) => {
          const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
          return `  ${visible(path)}  ${files.length} files, ${bytesText(bytes)}\n`
        }),
      )
      yield* writeError(lines.join(""))
      const question = paths.length === 1 ? "Delete this run" : `Delete these ${paths.length} runs`
      if (!(yield* ask(`${question}? This cannot be undone. [y/N] `))) return yield* writeError("nothing was deleted\n")
    }
    const { deleteRun } = yield* Effect.promise(() => import("../../run/manage/deleteRun.ts"))
    for (const [path, entry] of byPath) {
      const kept = outsideOf(yield* readRun(entry).places)
      yield* deleteRun(path, owner)
      yield* writeOut(`deleted ${visible(path)}\n`)
      for (const place of kept)
        yield* writeError(`note: its files in ${visible(place)} are outside of its folder, and stay\n`)
    }
  }),
)

/** The subcommands of `effect runs` that change runs. */
export const manageRuns = [rename, note, tag, archive, remove] as const

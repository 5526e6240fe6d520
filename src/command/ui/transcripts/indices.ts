/**
 * Keeps indices of the run files that contain episodes. Such files may be larger than the memory, so only the offsets of
 * their lines are kept. When a file has grown, only the new part is read.
 */
import { Effect, Semaphore } from "effect"
import { isPlain } from "../../../base/config/plain.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { scoreLine } from "../../../run/record/scoreLine.ts"
import { unplacedEntry } from "../../../run/find/RunEntry.ts"
import * as Layout from "../../../run/Layout.ts"
import type { FileSource } from "../../../run/read/FileSource.ts"
import * as RunReader from "../../../run/RunReader.ts"
import { parsed } from "../json.ts"
import {
  type FileIndex,
  type EpisodeGroup,
  rolloutsIndex,
  type SamplesIndex,
  samplesIndex,
  scoresIndex,
  type Span,
} from "./fileIndex.ts"
import { forEachLine } from "./wholeLines.ts"

/** The index of one file, and the position up to which the file was read. */
interface CachedIndex<Index> {
  readonly index: Index
  /** The number of bytes read so far, in whole lines. */
  read: number
  /**
   * The offset of the last line that was read, and its first bytes. If the file now has other bytes there, it was rewritten.
   */
  last: number
  begins: string
  /** Whether the scores come from a trainer without language models. Lines of such scores are not steps, so none is read. */
  foreign: boolean
}

/** The indices of a run's files. */
export interface RunIndices {
  readonly files: Map<string, CachedIndex<FileIndex>>
  /**
   * The indices of the files of samples. These files are the largest, so they are read only when a transcript is requested.
   */
  readonly samples: Map<string, CachedIndex<SamplesIndex>>
  /** The result of the last search. */
  lastSearch: { readonly text: string; readonly read: string; readonly keys: ReadonlySet<string> } | undefined
}

/** The largest number of runs whose indices are kept in memory. */
const mostRuns = 8
/** The largest number of bytes of the last line that are compared, to recognise a rewritten file. */
const compared = 1024

/** The indices of the runs that were read last. */
interface Indices {
  readonly files: FileSource
  /** The runs by their paths, in the order of use: the run that was read last is at the end. */
  readonly runs: Map<string, RunIndices>
  /** Two simultaneous readers of a run would add the same lines twice. */
  readonly turn: Semaphore.Semaphore
}

export const makeIndices = (files: FileSource): Indices => ({
  files,
  runs: new Map(),
  turn: Semaphore.makeUnsafe(1),
})

/** Reads the new lines of a run's files, and returns the indices of the files. */
export const readRun = ({ files, runs, turn }: Indices, path: string): Effect.Effect<RunIndices> =>
  turn.withPermits(1)(
    Effect.gen(function* () {
      const run: RunIndices = runs.get(path) ?? { files: new Map(), samples: new Map(), lastSearch: undefined }
      const sources = yield* filesOf(files, path)
      for (const old of run.files.keys()) if (!sources.some(({ file }) => file === old)) run.files.delete(old)
      for (const { file, group, isScores } of sources) {
        const make = () => (isScores ? scoresIndex : rolloutsIndex)(file, group)
        run.files.set(file, yield* readFile(files, file, run.files.get(file), { make, isScores }))
      }
      runs.delete(path)
      runs.set(path, run)
      for (const oldest of runs.keys()) if (runs.size > mostRuns) runs.delete(oldest)
      return run
    }),
  )

/** Reads the index of a file of samples, and returns the parts of the file with the samples of these rollouts. */
export const spansOfSamples = (
  { files, turn }: Indices,
  run: RunIndices,
  file: string,
  rollouts: ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<Span>> =>
  Effect.map(
    turn.withPermits(1)(readFile(files, file, run.samples.get(file), { make: samplesIndex, isScores: false })),
    (kept) => {
      run.samples.set(file, kept)
      const spans = rollouts.flatMap((id) => kept.index.spans.get(id) ?? [])
      return spans.sort((a, b) => a.from - b.from)
    },
  )

/** Adds the new lines of a file to the index `before`. If the file is new or was rewritten, `make` makes a new index. */
const readFile = Effect.fnUntraced(function* <Index extends Pick<FileIndex, "add">>(
  files: FileSource,
  path: string,
  before: CachedIndex<Index> | undefined,
  { make, isScores }: { readonly make: () => Index; readonly isScores: boolean },
): Effect.fn.Return<CachedIndex<Index>> {
  const size = (yield* files.size(path)) ?? 0
  // A file that was truncated when the run was resumed, or was rewritten, is read from its beginning.
  const isSame =
    before !== undefined &&
    size >= before.read &&
    (before.read === 0 || before.begins === (yield* beginning(files, path, before.last, before.read)))
  const kept: CachedIndex<Index> = isSame ? before : { index: make(), read: 0, last: 0, begins: "", foreign: false }
  if (kept.foreign || size === kept.read) return kept
  yield* forEachLine(files, path, { from: kept.read, to: size }, (line) => {
    if (isScores && kept.read === 0 && scoreLine(line.text)?.of !== "step") {
      kept.foreign = true
      return "stop"
    }
    kept.index.add(line)
    kept.read = line.to
    kept.last = line.from
    return undefined
  })
  if (kept.read > 0) kept.begins = yield* beginning(files, path, kept.last, kept.read)
  return kept
})

/** Reads the first characters of a line. */
const beginning = (files: FileSource, path: string, from: number, to: number): Effect.Effect<string> =>
  Effect.map(files.part(path, from, Math.min(compared, to - from)), (bytes) => utf8.decode(bytes))

interface IndexSource {
  readonly file: string
  readonly group: EpisodeGroup
  readonly isScores: boolean
}

const batches = { rollouts: Layout.batchRollouts, outcomes: Layout.batchOutcomes }

/** Returns the names of an evaluation's agents in order, from its `config.json`; an empty list for other runs. */
const contestantsIn = (config: string | undefined): ReadonlyArray<string | null> => {
  const parsedConfig = config === undefined ? undefined : parsed(config)
  if (!isPlain(parsedConfig) || kindOf(parsedConfig) !== "evaluation" || !Array.isArray(parsedConfig.agents)) return []
  return parsedConfig.agents.map((agent: unknown) =>
    isPlain(agent) && typeof agent.name === "string" ? agent.name : null,
  )
}

/** Returns the files of a run that contain episodes. Rollouts come before the scores of the same episodes. */
const filesOf = Effect.fnUntraced(function* (
  files: FileSource,
  run: string,
): Effect.fn.Return<ReadonlyArray<IndexSource>> {
  const { locate } = RunReader.over(files)(unplacedEntry(run))
  const names = contestantsIn(yield* files.text(`${run}/${Layout.configJson}`))
  const train: EpisodeGroup = { name: "train", phase: "train", seen: null, contestant: null }
  const validations = Effect.fnUntraced(function* (folder: string, isScores: boolean) {
    return (yield* files.list(folder))
      .flatMap((name) => {
        const seen = Layout.seenEpisodesOf(name)
        if (seen === undefined) return []
        const group: EpisodeGroup = {
          name: `val${seen}`,
          phase: "validation",
          seen,
          contestant: names.at(seen) ?? null,
        }
        return { file: `${folder}/${name}`, group, isScores }
      })
      .sort((a, b) => (a.group.seen ?? 0) - (b.group.seen ?? 0))
  })
  const all: ReadonlyArray<IndexSource> = [
    ...Object.entries(batches).map(([name, file]): IndexSource => ({
      file: `${run}/${file}`,
      group: { name, phase: "batch", seen: null, contestant: null },
      isScores: false,
    })),
    { file: `${run}/${Layout.trainRollouts}`, group: train, isScores: false },
    { file: yield* locate(Layout.trainScores), group: train, isScores: true },
    ...(yield* validations(`${run}/${Layout.validationRolloutsFolder}`, false)),
    ...(yield* validations(yield* locate(Layout.validationScoresFolder), true)),
  ]
  const sizes = yield* Effect.forEach(all, ({ file }) => files.size(file))
  return all.filter((_, at) => sizes[at] !== undefined)
})

/**
 * Lists the episodes of runs of language-model agents, and reads the transcript of an episode when it is requested. The
 * server and the export use this file. It writes nothing.
 */
import { Effect, Exit, Option, Schema } from "effect"
import { RolloutOutcome } from "../../../agents/episode/rollouts/Outcome.ts"
import { Rollout } from "../../../agents/episode/Rollout.ts"
import { pathFor, Sample } from "../../../agents/episode/samples/samples.ts"
import { CallFile } from "../../../agents/lm/callFiles.ts"
import * as ScoreRecords from "../../../run/record/ScoreRecords.ts"
import { unplacedEntry } from "../../../run/find/RunEntry.ts"
import type { FileSource } from "../../../run/read/FileSource.ts"
import * as RunReader from "../../../run/RunReader.ts"
import { parsed } from "../json.ts"
import { type EpisodeQuery, chosen, type ListedEpisode, largestAdvantage, pageOf, says } from "./Episode.ts"
import type { IndexedEpisode, Span } from "./fileIndex.ts"
import { fromRollouts } from "./fromRollouts.ts"
import { fromScores } from "./fromScores.ts"
import { makeIndices, readRun, type RunIndices, spansOfSamples } from "./indices.ts"
import { forEachLine } from "./wholeLines.ts"
import type { Transcript } from "./Transcript.ts"
import * as Layout from "../../../run/Layout.ts"

export interface PageAsked extends EpisodeQuery {
  /** Selects the episodes whose transcripts contain this text. */
  readonly text: string
  readonly from: number
  readonly count: number
  /** The key of an episode. If it is selected, the page that contains it is returned. */
  readonly at: string | null
}

export const makeTranscripts = (files: FileSource) => {
  const indices = makeIndices(files)
  return {
    /** Returns a part of the list of a run's episodes. */
    page: Effect.fnUntraced(function* (path: string, asked: PageAsked) {
      const run = yield* readRun(indices, path)
      const all = episodesOf(run)
      const keys = asked.text === "" ? undefined : yield* search(files, run, all, asked.text)
      const matching = chosen(all, asked).filter(({ key }) => keys?.has(key) ?? true)
      const groups = Array.from(
        Map.groupBy(all, ({ group }) => group),
        ([name, episodes]) => {
          const { seen, contestant } = episodes[0]
          return { name, seen, contestant, episodes: episodes.length }
        },
      )
      const page = pageOf(matching, asked)
      const largest = largestAdvantage(all)
      return { total: all.length, groups, largest, ...page, episodes: page.episodes.map(shown) }
    }),
    /** Returns the transcript of an episode; undefined if there is no such episode. */
    one: Effect.fnUntraced(function* (path: string, key: string) {
      const run = yield* readRun(indices, path)
      const all = episodesOf(run)
      const episode = all.find((one) => one.key === key)
      if (episode === undefined) return undefined
      const samplesIn: SamplesIn = (file, rollouts) => spansOfSamples(indices, run, file, rollouts)
      return yield* transcriptOf({ files, run: path, largest: largestAdvantage(all) }, episode, samplesIn)
    }),
  }
}

/** Returns the keys of the episodes whose transcripts contain a text. */
const search = Effect.fnUntraced(function* (
  files: FileSource,
  run: RunIndices,
  episodes: ReadonlyArray<IndexedEpisode>,
  text: string,
) {
  const wanted = text.toLowerCase()
  const state = JSON.stringify(Array.from(run.files, ([file, { read }]) => [file, read]))
  if (run.lastSearch?.text === wanted && run.lastSearch.read === state) return run.lastSearch.keys
  const raw = JSON.stringify(wanted).slice(1, -1)
  const keys = new Set<string>()
  for (const [file, inFile] of Map.groupBy(episodes, (episode) => episode.file)) {
    const places = inFile.flatMap((episode) => episode.spans.map((span) => ({ ...span, episode })))
    places.sort((a, b) => a.from - b.from)
    let at = 0
    yield* forEachLine(files, file, {}, (line) => {
      while (at < places.length && places[at].to <= line.from) at++
      const text = line.text.toLowerCase()
      // Lines without the text are not parsed, unless they contain escapes: other programs may escape characters.
      if (!text.includes(raw) && !text.includes("\\u")) return undefined
      const value = parsed(line.text)
      for (let next = at; next < places.length && places[next].from <= line.from; next++) {
        const { episode } = places[next]
        if (!keys.has(episode.key) && says(value, wanted)) keys.add(episode.key)
      }
      return undefined
    })
  }
  run.lastSearch = { text: wanted, read: state, keys }
  return keys
})

/** Returns an episode without the fields that only the index uses. */
const shown = ({ file: _file, spans: _spans, ...episode }: IndexedEpisode): ListedEpisode => episode

/** Returns the episodes by group. Scores only add episodes that have no rollout, because they failed or are unfinished. */
const episodesOf = (run: RunIndices): ReadonlyArray<IndexedEpisode> => {
  const indices = Array.from(run.files.values(), ({ index }) => index.episodes)
  const groups = Map.groupBy(indices.flat(), ({ group }) => group)
  return Array.from(groups.values()).flatMap((episodes) => {
    const rollouts = episodes.filter(({ id }) => id !== null)
    if (rollouts.length === 0 || rollouts.length === episodes.length) return episodes
    return merged(
      rollouts,
      episodes.filter(({ id }) => id === null),
    )
  })
}

/**
 * Merges rollouts and scores by number. The n-th rollout of a validation belongs to the validation's n-th episode that didn't
 * fail.
 */
const merged = (
  rollouts: ReadonlyArray<IndexedEpisode>,
  scores: ReadonlyArray<IndexedEpisode>,
): ReadonlyArray<IndexedEpisode> => {
  if (rollouts[0].phase === "batch") return [...rollouts, ...scores].toSorted((a, b) => a.number - b.number)
  if (rollouts[0].phase === "train") {
    const numbers = new Set(rollouts.map(({ number }) => number))
    return [...rollouts, ...scores.filter(({ number }) => !numbers.has(number))].toSorted((a, b) => a.number - b.number)
  }
  let at = 0
  const all = scores.map((scored): IndexedEpisode => {
    const rollout = scored.failed === null ? rollouts.at(at++) : undefined
    return rollout === undefined ? scored : { ...rollout, key: scored.key, number: scored.number }
  })
  return [...all, ...rollouts.slice(at)]
}

const rolloutOf = Schema.decodeUnknownExit(Rollout)
const outcomeOf = Schema.decodeUnknownExit(RolloutOutcome)
const sampleOf = Schema.decodeUnknownExit(Sample)
const callFileOf = Schema.decodeUnknownExit(CallFile)

/** Returns the parts of a file that contain the samples of these rollouts. */
type SamplesIn = (file: string, rollouts: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Span>>

/** Reads and parses the lines in the spans of a file. */
const linesOf = Effect.fnUntraced(function* (
  files: FileSource,
  { file, spans }: Pick<IndexedEpisode, "file" | "spans">,
) {
  const values: Array<unknown> = []
  for (const span of spans) {
    yield* forEachLine(files, file, span, ({ text }) => {
      values.push(parsed(text))
      return undefined
    })
  }
  return values
})

const valuesOf = <A>(
  all: ReadonlyArray<unknown>,
  decode: (value: unknown) => Exit.Exit<A, unknown>,
): ReadonlyArray<A> =>
  all.flatMap((value) => {
    const decoded = decode(value)
    return Exit.isSuccess(decoded) ? [decoded.value] : []
  })

const transcriptOf = Effect.fnUntraced(function* (
  { files, run, largest }: { readonly files: FileSource; readonly run: string; readonly largest: number | null },
  indexed: IndexedEpisode,
  samplesIn: SamplesIn,
): Effect.fn.Return<Transcript> {
  const episode = shown(indexed)
  const lines = yield* linesOf(files, indexed)
  if (indexed.id === null) {
    const isTrainers = (yield* RunReader.over(files)(unplacedEntry(run)).kind) === "multirun"
    const scores = lines
      .flatMap((line) => Option.toArray(ScoreRecords.decode(line)))
      .filter((line) => line.episode_index === indexed.number)
    return fromScores({ episode, largest, isTrainers }, scores, yield* callsOf(files, run, indexed))
  }
  const rollouts = [...valuesOf(lines, rolloutOf), ...valuesOf(lines, outcomeOf).flatMap((outcome) => outcome.rollouts)]
  const first = rollouts.find(({ id }) => id === indexed.id)
  // The index found a rollout here, but its line cannot be read.
  if (first === undefined) {
    return fromScores(
      { episode: { ...episode, failed: "its rollout can't be read" }, largest: null, isTrainers: false },
      [],
      [],
    )
  }
  return fromRollouts(
    episode,
    [first, ...rollouts.filter((rollout) => rollout !== first)],
    yield* samplesOf(files, indexed, rollouts, samplesIn),
  )
})

const samplesOf = Effect.fnUntraced(function* (
  files: FileSource,
  { file }: IndexedEpisode,
  rollouts: ReadonlyArray<Rollout>,
  samplesIn: SamplesIn,
): Effect.fn.Return<ReadonlyArray<Sample>> {
  const path = pathFor(file)
  if (path === file || (yield* files.size(path)) === undefined) return []
  const ids = new Set(rollouts.map(({ id }) => id))
  return valuesOf(yield* linesOf(files, { file: path, spans: yield* samplesIn(path, [...ids]) }), sampleOf)
})

/** The largest number of calls from files of calls in a transcript. */
const mostCalls = 1000

/** Reads the files of an episode's calls, with reflections last. */
const callsOf = Effect.fnUntraced(function* (
  files: FileSource,
  run: string,
  { phase, seen, number, length, failed }: IndexedEpisode,
): Effect.fn.Return<ReadonlyArray<CallFile>> {
  const played = phase === "train" ? phase : { seenEpisodes: seen ?? 0 }
  const found: Array<CallFile> = []
  for (const purpose of ["action", "reflection"]) {
    const place = `${run}/${Layout.callFolder({ phase: played, purpose })}`
    // Most runs have no such files; this check saves a look-up for every step.
    if ((yield* files.list(place)).length === 0) continue
    // An episode's length does not count the step at which the episode failed.
    for (let step = 0; step <= length + (failed === null ? 0 : 1); step++) {
      for (let call = 0; found.length < mostCalls; call++) {
        const name = Layout.callFile({ phase: played, purpose, episode: number, step }, call)
        const text = yield* files.text(`${run}/${name}`)
        if (text === undefined) break
        found.push(...valuesOf([parsed(text)], callFileOf))
      }
    }
  }
  return found
})

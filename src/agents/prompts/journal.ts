/**
 * Defines the journal of a run that learns prompts, `prompts.jsonl`: a line of settings, then a line for each played episode and
 * each reflection. A resumed run makes the same requests again in the same order and finds their answers here.
 */
import { Schema } from "effect"
import { prompts as files } from "../../run/Layout.ts"
import { EpisodeToScore } from "../evaluate/PlayedEpisode.ts"
import { EpisodeRow } from "../evaluate/rows.ts"
import { sealedJournal } from "../evaluate/sealedJournal.ts"
import { Completion } from "../lm/Chat.ts"
import { Spending } from "../lm/middleware/budgeted.ts"
import { Texts } from "./candidates.ts"

/** What a run has spent, and the seconds that it had taken, when a line was written. */
const totals = { spent: Spending, seconds: Schema.Finite }

/** A played episode. `place` names the request that it answers, e.g. `iteration/3/parent`. */
export const EpisodeEntry = Schema.Struct({
  place: Schema.String,
  played: EpisodeToScore,
  row: EpisodeRow,
  /** The texts for which an agent with code of its own asked, with its own values. Only the seed's validation has them. */
  asked: Schema.optionalKey(Texts),
  ...totals,
})
export type EpisodeEntry = typeof EpisodeEntry.Type

/** The answer of the reflection model, with the prompt. The answer is null if a filter withheld it. */
const ReflectionEntry = Schema.Struct({
  place: Schema.String,
  prompt: Schema.String,
  completion: Schema.NullOr(Completion),
  ...totals,
})

const Entry = Schema.Union([EpisodeEntry, ReflectionEntry])
type Entry = typeof Entry.Type

/** Returns the key of a line: the request, and for an episode its task. */
export const keyOf = (place: string, task?: number): string => (task === undefined ? place : `${place} ${task}`)

const ownKey = (entry: Entry): string => keyOf(entry.place, "played" in entry ? entry.played.task : undefined)

export const { readEarlier, readAgain, begin, open } = sealedJournal({
  file: files.journal,
  head: "prompts",
  entry: Entry,
  keyOf: ownKey,
  remedies: {
    first: "put it back as it was, or start a new run",
    other: "remove it, and its call is made again",
  },
})

/** Defines the journal of an evaluation, `played.jsonl`: a line of settings, then a line for every episode with its scores. */
import { Schema } from "effect"
import { evaluation as files } from "../../run/Layout.ts"
import { Spending } from "../lm/middleware/budgeted.ts"
import { EpisodeToScore } from "./PlayedEpisode.ts"
import { EpisodeRow } from "./rows.ts"
import { sealedJournal } from "./sealedJournal.ts"

/** An episode that has ended, with its scores. */
export const JournalEntry = Schema.Struct({
  played: EpisodeToScore,
  row: EpisodeRow,
  /** The calls, tokens and cost of all agents together when this episode had ended. */
  spent: Spending,
  /** The seconds that the run had taken when this episode had ended. */
  seconds: Schema.Finite,
})
export type JournalEntry = typeof JournalEntry.Type

/** The first line of a journal: the settings with which the episodes were played. */
export const JournalHead = Schema.Struct({ evaluation: Schema.Record(Schema.String, Schema.Unknown) })

/** Returns the key of an episode. */
export const keyOf = (agent: string, index: number): string => `${index} ${agent}`

export const { readEarlier, readAgain, begin, open } = sealedJournal({
  file: files.journal,
  head: "evaluation",
  entry: JournalEntry,
  keyOf: ({ row, played }) => keyOf(row.agent, played.index),
  remedies: {
    first: "put it back as it was, or start a new evaluation",
    other: "remove it, and its episode is played again",
  },
})

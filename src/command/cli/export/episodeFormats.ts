/** Names the formats in which `effect export` writes the episodes of language-model agents; `episodes.ts` writes them. */
import { ofKind } from "../findRun.ts"

export const episodeFormats = ["atif", "inspect"] as const
export type EpisodeFormat = (typeof episodeFormats)[number]

/** The runs that have such episodes. */
export const runsOfAgents = ofKind("a run of language-model agents", "agents", "evaluation")

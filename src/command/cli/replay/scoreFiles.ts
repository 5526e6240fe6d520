/** Reads the score files of runs, to compare them. */
import { join } from "node:path"
import { Effect } from "effect"
import { mostBytes, namesIn, readRunText } from "../../../base/files/files.ts"
import * as Layout from "../../../run/Layout.ts"
import type { ScoreFiles } from "./compareScores.ts"

/** Reads the score files of a run. Returns their texts by their paths in the run's folder. */
export const scoresIn = Effect.fnUntraced(function* (run: string) {
  const files = new Map<string, string>()
  for (const folder of [Layout.trainScoresFolder, Layout.validationScoresFolder]) {
    for (const name of yield* namesIn(join(run, folder))) {
      if (!name.endsWith(".jsonl")) continue
      files.set(`${folder}/${name}`, yield* readRunText(join(run, folder, name), mostBytes.text))
    }
  }
  return files
})

/** Reads the score files of several runs, from a map of run ids to folders. The returned paths begin with the ids. */
export const scoresOfAll = Effect.fnUntraced(function* (runs: ReadonlyMap<string, string>) {
  const all = new Map<string, string>()
  for (const [id, folder] of runs) {
    for (const [path, text] of yield* scoresIn(folder)) all.set(`${id}/${path}`, text)
  }
  return all satisfies ScoreFiles
})

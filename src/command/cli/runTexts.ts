/** Defines `effect runs texts RUN`, which shows what a run that learns prompts has changed. It only reads the run's files. */
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { exists, mostBytes, readRunText } from "../../base/files/files.ts"
import { harmless, messageOf } from "../../base/text/text.ts"
import * as Layout from "../../run/Layout.ts"
import { interval } from "../../base/statistics/intervals.ts"
import { table } from "../../run/find/table.ts"
import { ofKind, runFolder } from "./findRun.ts"
import { comparisonTableIn } from "../promptsComparisons.ts"
import * as Flags from "./flags.ts"
import { colored } from "./output/colors.ts"
import { usageError, writeJson, writeOut } from "./output/output.ts"

const promptsRuns = ofKind("a run that learns prompts", "prompts")

export const runTexts = Flags.subcommand(
  "texts",
  {
    description:
      "Show what a run that learns prompts has changed: its candidates, and the differences between the seed's texts and the " +
      "best ones, line by line. A running run shows the best texts so far.",
    short: "Show the texts that a run has learned",
    examples: {
      "effect runs texts latest": "What the newest such run has changed",
      "effect runs texts latest --candidate 3": "What candidate 3 changes",
      "effect runs texts latest --json | jq -r .after.system_prompt": "The best system prompt",
    },
  },
  {
    run: Flags.argument("run", Flags.runArgument),
    candidate: Flags.number("candidate", "countOrNone", "The candidate to compare with the seed (default: the best)"),
    resultsDir: Flags.lookupDir,
    json: Flags.toggle("json", "Print one JSON object"),
  },
  Effect.fnUntraced(function* (input) {
    const { prompts, changes } = yield* Effect.promise(async () => ({
      prompts: await import("../../agents/prompts/Prompts.ts"),
      changes: await import("../../agents/prompts/changes.ts"),
    }))
    const run = yield* runFolder(input.run, { folders: [input.resultsDir], usable: promptsRuns, quiet: input.json })
    const file = join(run, Layout.prompts.candidates)
    if (!(yield* exists(file))) {
      return yield* usageError(`${run}: it has no ${Layout.prompts.candidates}; expected a run that learns prompts`)
    }
    const decode = Schema.decodeUnknownEffect(jsonText(prompts.CandidatesFile))
    const { best, candidates } = yield* Effect.mapError(
      Effect.flatMap(readRunText(file, mostBytes.text), decode),
      (error) => usageError(`${file}: ${messageOf(error)}`),
    )
    const chosen = Option.getOrElse(input.candidate, () => best)
    if (chosen >= candidates.length) {
      return yield* usageError(`--candidate ${chosen}: expected one of 0 to ${candidates.length - 1}`)
    }
    const [before, after] = [candidates[0].texts, candidates[chosen].texts]
    const rows = candidates.map(({ parents, scores, foundAfter }, index) => {
      const { mean, low, high } = interval(scores)
      const spread = `${mean.toFixed(3)}  [${low.toFixed(3)}, ${high.toFixed(3)}]`
      return [`${index}${index === best ? " *" : ""}`, parents.join(" + ") || "seed", spread, String(foundAfter)]
    })
    if (input.json) return yield* writeJson({ run, best, candidate: chosen, before, after })
    yield* writeOut(table(["candidate", "from", "validation", "found after"], rows))
    const comparisons = yield* comparisonTableIn(run)
    if (comparisons !== "") yield* writeOut(`\n${comparisons}`)
    for (const { name, lines } of changes.textChanges(before, after)) {
      yield* writeOut(`\n${colored("bold", harmless(name))}  candidate 0 → ${chosen}\n`)
      yield* writeOut(lines.map(({ kind, line }) => `${shown(kind, line)}\n`).join(""))
    }
    if (best === 0) yield* writeOut("\nno candidate is better than the seed\n")
    else if (chosen === 0) yield* writeOut("\ncandidate 0 is the seed itself\n")
  }),
)

const shown = (kind: "same" | "removed" | "added", line: string): string => {
  const safe = harmless(line)
  if (kind === "same") return `  ${safe}`
  return kind === "removed" ? colored("red", `- ${safe}`) : colored("green", `+ ${safe}`)
}

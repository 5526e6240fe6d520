/** Lets the configs of a command name other runs by `latest` or a part of their path, as the command line does. */
import { Effect } from "effect"
import { exists } from "../../../base/files/files.ts"
import { FindRun } from "../../../run/FindRun.ts"
import type { RunKind } from "../../../run/RunSpec.ts"
import { havingCheckpoint, ofKind, runFolder } from "../findRun.ts"

const nouns: Readonly<Partial<Record<RunKind, string>>> = {
  agents: "a training of a language-model agent",
  prompts: "a run that learns prompts",
  training: "a training with a checkpoint",
}

interface Finding {
  readonly resultsDir: string
  readonly quiet: boolean
}

/** Provides `FindRun` for the results folder. The path of each run that is found is printed once. */
export const withFindRun =
  ({ resultsDir, quiet }: Finding) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const services = yield* Effect.context<Effect.Services<ReturnType<typeof runFolder>>>()
      const printed = new Set<string>()
      const findRun: FindRun = Effect.fnUntraced(function* (wanted, kind) {
        if (yield* Effect.provideContext(exists(wanted), services)) return wanted
        const isQuiet = quiet || printed.has(`${kind} ${wanted}`)
        const usable = havingCheckpoint(ofKind(nouns[kind] ?? `a ${kind}`, kind))
        const folder = yield* runFolder(wanted, { folders: [resultsDir], usable, quiet: isQuiet }).pipe(
          Effect.provideContext(services),
        )
        printed.add(`${kind} ${wanted}`)
        return folder
      })
      return yield* Effect.provideService(effect, FindRun, findRun)
    })

import { join } from "node:path"
import { withServer } from "../command/cli/experiment.ts"
import { runsIn } from "../command/cli/crash.ts"
import { effect, resultOf } from "../command/cli/effect.ts"
import { answersIn, killedAndResumed, textOf } from "../command/cli/promptsCrash.ts"
import { mailModels } from "../agents/prompts/mailModels.ts"
import { must, type Proof } from "./Proof.ts"

/** Proofs of runs that learn prompts. */

const kills = 20

type Result = ReturnType<typeof resultOf>

interface Interval {
  readonly mean: number
  readonly low: number
  readonly high: number
}

/** Returns the comparison of the seed and the best candidate on the held-out tasks, in words. Fails if it shows no gain. */
const heldOut = (result: Result): string => {
  const { tasks, seed, best, difference } = Object(result["testScores"])
  const shown = ({ mean, low, high }: Interval): string => `${mean.toFixed(2)} [${low.toFixed(2)}; ${high.toFixed(2)}]`
  const text = `${tasks} held-out tasks: ${shown(seed)} with the seed's prompt, ${shown(best)} with the best, difference ${shown({ ...difference, mean: difference.difference })}`
  must(difference.low > 0, text)
  return text
}

/** Fails unless two runs have the same candidates, and the same state of the search after each answer. */
const same = (one: { run: string; result: Result }, other: { run: string; result: Result }, what: string): void => {
  must(one.result.digest === other.result.digest, `${what}: another digest`)
  for (const file of ["candidates.json", "texts.json"])
    must(textOf(one.run, file) === textOf(other.run, file), `${what}: ${file} differs`)
}

/** Runs a search to its end in one go. */
const whole = async (args: ReadonlyArray<string>, results: string) => {
  const outcome = await effect([...args, "--results-dir", results, "--quiet", "--json"])
  must(outcome.code === 0, outcome.stderr)
  const [run] = runsIn(results)
  return { run, result: resultOf(outcome) }
}

/** The words that run the example with the models of a server, whose answers are recorded in a folder or read from it. */
const mailsWith = (url: string, cache: "record" | "replay", folder: string): ReadonlyArray<string> => {
  const at = { "agent.lm_config": `${url}/v1`, "learner.reflection_lm_config": url }
  const settings = Object.entries(at).flatMap(([model, address]) => [
    `${model}.base_url=${address}`,
    `${model}.cache=${cache}`,
    `${model}.cache_dir=${folder}`,
    `${model}.starting_delay=0.001`,
  ])
  return ["run", "examples/agents/mails.yaml", ...settings.flatMap((setting) => ["--set", setting])]
}

/** The ways in which an answer of the reflection model has no usable text. */
const unusable = ["no_text", "same_text", "too_long", "cut_off", "withheld"]

const outcomesOf = (result: Result): ReadonlyMap<string, number> =>
  new Map(
    [Object(result)["outcomes"]]
      .flat()
      .map(({ outcome, count }: { outcome: string; count: number }) => [outcome, count]),
  )

export const prompts: ReadonlyArray<Proof> = [
  {
    name: "prompts-codebook",
    claim:
      "GEPA on the codebook task (examples/agents/prompts.yaml): a better prompt than the seed's on held-out tasks; killed with kill -9 at 20 random answers and resumed each time: the same candidates",
    run: async (folder) => {
      const args = ["run", "examples/agents/prompts.yaml"]
      const once = await whole(args, join(folder, "whole"))
      const answers = answersIn(once.run)
      const killed = await killedAndResumed({ args, results: join(folder, "killed"), kills, answers, seed: 1 })
      same(killed, once, "killed")
      return `${heldOut(once.result)}; ${kills} kills, the same ${String(once.result["candidates"])} candidates`
    },
  },
  {
    name: "prompts-mails",
    claim:
      "GEPA on 50 mails to sort (examples/agents/mails.yaml), with models imitated by a server that answers in the form of OpenAI's and Anthropic's APIs, makes mistakes, declines and fails at times: a better prompt than the seed's on 50 held-out mails; killed with kill -9 at 20 random answers and resumed each time, and repeated from the recorded answers after the server is gone: the same candidates",
    run: async (folder) => {
      const cache = join(folder, "answers")
      const { killed, url, asked } = await withServer(mailModels, async (server) => {
        const once = await whole(mailsWith(server.url, "record", join(folder, "others")), join(folder, "whole"))
        const campaign = { results: join(folder, "killed"), kills, answers: answersIn(once.run), seed: 2 }
        const resumed = await killedAndResumed({ ...campaign, args: mailsWith(server.url, "record", cache) })
        same(resumed, once, "killed")
        return { killed: resumed, url: server.url, asked: server.asked }
      })
      const replayed = await whole(mailsWith(url, "replay", cache), join(folder, "replayed"))
      same(replayed, killed, "repeated from the recorded answers")
      const outcomes = outcomesOf(killed.result)
      const missing = unusable.filter((outcome) => !outcomes.has(outcome))
      must(missing.length === 0, `no reflection ended with ${missing.join(", ")}`)
      const failed = asked.filter(({ fault }) => fault.kind !== "slow").length
      const without = unusable.map((outcome) => `${outcome} ${outcomes.get(outcome)}`).join(", ")
      return `${heldOut(killed.result)}; ${kills} kills, the same ${String(killed.result["candidates"])} candidates; reflections without a usable text: ${without}; ${failed} of ${asked.length} calls failed at first`
    },
  },
]

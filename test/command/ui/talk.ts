/** Runs whose agents talk, played by the runtime, as a results folder has them. */
import { Effect, Layer } from "effect"
import * as ReflexionAgent from "../../../src/agents/agent/ReflexionAgent.ts"
import * as ToolAgent from "../../../src/agents/agent/ToolAgent.ts"
import * as CalendarTask from "../../../src/agents/task/games/CalendarTask.ts"
import { drawn } from "../../../src/agents/task/games/calendar.ts"
import * as TaskSet from "../../../src/agents/task/TaskSet.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import { logged } from "../../../src/agents/lm/middleware/logged.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { type Input, type Place, runIn, tasks } from "../../agents/training/support.ts"
import { write } from "./folder.ts"

/** Plays it into the folder; the path of its run. */
const played = async (folder: string, input: Input, place: Place): Promise<string> => {
  const { effect, files } = runIn(place, input)
  const { runDir } = await Effect.runPromise(effect)
  for (const [path, bytes] of files) write(folder, path, bytes)
  return runDir
}

/** Numbers to be named: what is learnt is remembered, and looked back at. */
export const namingRun = (
  folder: string,
  { episodes = 12, saveRollouts = true, logCalls = false, verbose = true } = {},
): Promise<string> =>
  played(
    folder,
    {
      agent: ReflexionAgent.make({ model: "scripted:reader" }),
      train: tasks(episodes),
      validation: tasks(4),
      seed: 3,
      logCalls,
      runtime: { validationFreq: Math.ceil(episodes / 2), verboseScoreLogging: verbose },
      output: { saveRollouts },
    },
    {
      model: Layer.provide(Lm.middleware(logged), Scripted.layer(Scripted.named["reader"])),
    },
  )

const plans = [0, 1, 2].map((index) => drawn(4, 2, stream(7, "calendar", index)))

/** A calendar that is kept by calling functions: one call is wrong, and nothing is said to begin with. */
const secretary = Scripted.layer(({ messages }) => {
  const plan = plans.find(({ requests }) => requests.every((request) => messages[0].content.includes(request)))
  const answered = messages.filter(({ role }) => role === "tool").length
  const wrong = { name: "cancel_event", arguments: { id: 99 } }
  const next = [wrong, ...(plan?.calls ?? [])].at(answered)
  if (next === undefined) return "All of it is done."
  const toolCalls = [{ id: `call-${answered}`, name: next.name, arguments: JSON.stringify(next.arguments) }]
  return { content: answered === 0 ? "" : `That was number ${answered}.`, toolCalls }
})

export const calendarRun = (folder: string): Promise<string> =>
  played(
    folder,
    {
      agent: ToolAgent.make({ model: "secretary", traceTokens: true }),
      train: TaskSet.of(
        "calendar",
        plans.map((plan, index) => CalendarTask.make({ id: `calendar-${index}`, plan })),
      ),
      name: "calendar",
      seed: 1,
      output: { saveRollouts: true },
    },
    { model: secretary },
  )

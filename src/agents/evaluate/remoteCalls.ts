/** Collects the calls of models while another machine plays episodes, and reports them where the run is recorded. */
import { Effect } from "effect"
import { type CallRecord, CallSink } from "../lm/middleware/logged.ts"

/** Runs an Effect, and returns its result together with its calls of models, if they are to be logged. */
export const withCalls = Effect.fnUntraced(function* <A, E, R>(isLogged: boolean, work: Effect.Effect<A, E, R>) {
  const calls: Array<CallRecord> = []
  const collect = isLogged ? CallSink.whole((call) => Effect.sync(() => calls.push(call))) : null
  const result = yield* Effect.provideService(work, CallSink, collect)
  return { result, calls }
})

/** Reports the finished calls of another machine to the run's sink. */
export const reportCalls = Effect.fnUntraced(function* (calls: ReadonlyArray<CallRecord>) {
  const sink = yield* CallSink
  if (sink === null) return
  for (const call of calls) {
    const ended = yield* sink.begin({ ...call, response: null, error: null, endedAtMillis: null })
    yield* ended(call)
  }
})

/** Measures what the gateway costs: time on processors, delay of calls, and memory. Its clients and its server have their own processes. */
import { defineBench } from "../Bench.ts"
import {
  atRate,
  callsAt,
  conversation,
  type Listening,
  percentile,
  play,
  post,
  sleep,
  together,
  withProcesses,
} from "../gateway/processes.ts"

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(0)

/**
 * Returns the processor time of a call of each server, in milliseconds: the least of many rounds, since other programs that share
 * the cores make it longer. The servers take turns.
 */
const cpuOf = async (servers: ReadonlyArray<Listening>, turns: number): Promise<ReadonlyArray<number>> => {
  const sessions = 400 / turns
  const least = servers.map(() => Infinity)
  for (let round = 0; round < 24; round++) {
    for (const [at, server] of servers.entries()) {
      const before = await server.cpuMillis()
      await play(server, { name: `cpu-${turns}-${round}`, sessions, turns })
      least[at] = Math.min(least[at], ((await server.cpuMillis()) - before) / (sessions * turns))
    }
  }
  return least
}

/** Measures the delays of calls at a rate, in turns with and without the gateway, so that other load meets both. */
const delays = async (
  { gateway, upstream }: { readonly gateway: Listening; readonly upstream: Listening },
  rate: number,
) => {
  const [body] = conversation("a short one", 1)
  const behind: Array<number> = []
  const alone: Array<number> = []
  for (let round = 0; round < 4; round++) {
    const id = (index: number): string => `rate-${rate}-${round}-${Math.floor(index / 10)}`
    behind.push(...(await atRate(rate, 3, (index) => post(callsAt(gateway, id(index)), body))))
    alone.push(...(await atRate(rate, 3, (index) => post(callsAt(upstream, id(index)), body))))
  }
  return (share: number): number => percentile(behind, share) - percentile(alone, share)
}

export default [
  defineBench({
    name: "gateway-cpu",
    unit: "ms",
    higherIsBetter: false,
    about:
      "Processor time of the gateway's process for a call with one message of 2 kB, the end of its session included",
    run: () =>
      withProcesses(async ({ gateway, proxy }) => {
        const [value, floor] = await cpuOf([gateway, proxy], 1)
        const [long, longFloor] = await cpuOf([gateway, proxy], 20)
        return {
          value,
          details: {
            "bare proxy": floor.toFixed(2),
            "20 turns of 2 kB": long.toFixed(2),
            "bare proxy, 20 turns": longFloor.toFixed(2),
          },
        }
      }),
  }),
  defineBench({
    name: "gateway-overhead",
    unit: "ms",
    higherIsBetter: false,
    about: "What the gateway adds to the median call at 200 calls a second, with further percentiles and rates",
    run: () =>
      withProcesses(async (processes) => {
        await play(processes.gateway, { name: "warm", sessions: 2000, turns: 1 })
        await play(processes.upstream, { name: "warm", sessions: 2000, turns: 1 })
        const details: Record<string, string> = {}
        let value = 0
        for (const rate of [50, 100, 200]) {
          const added = await delays(processes, rate)
          for (const share of [0.5, 0.9, 0.99]) details[`${rate}/s, p${share * 100}`] = added(share).toFixed(2)
          value = added(0.5)
        }
        return { value, details }
      }),
  }),
  defineBench({
    name: "gateway-sessions",
    unit: "MB",
    higherIsBetter: false,
    about:
      "Memory of the gateway's process while 2,000 sessions are open, each with a call in progress at the same time",
    run: () =>
      withProcesses(async ({ gateway, recorded }) => {
        const [sessions, turns] = [2000, 3]
        await post(callsAt(gateway, "first"), conversation("first", 1)[0])
        const before = await gateway.memory()
        const began = performance.now()
        await play(gateway, { name: "open", sessions, turns, atOnce: sessions, ends: false })
        const seconds = (performance.now() - began) / 1000
        const answered = performance.now()
        const atOnce = recorded() - 1
        // Calls are answered first, and written soon after, many together.
        while (recorded() <= sessions * turns && performance.now() - answered < 10_000) await sleep(5)
        const millis = performance.now() - answered
        const written = recorded() - 1
        const { rss, heapUsed } = await gateway.memory()
        return {
          value: rss / 1e6,
          details: {
            "before, in MB": megabytes(before.rss),
            "heap, in MB": megabytes(heapUsed),
            "calls recorded with the last answer": `${atOnce} of ${sessions * turns}`,
            "and soon after": `${written}, ${Math.round(millis)} ms later`,
            "calls/s": Math.round((sessions * turns) / seconds),
          },
        }
      }),
  }),
  defineBench({
    name: "gateway-memory",
    unit: "MB",
    higherIsBetter: false,
    about: "What the heap grows by from the 10,000th to the 100,000th call, in sessions of ten calls",
    run: () =>
      withProcesses(async ({ gateway }) => {
        const details: Record<string, string | number> = {}
        const heaps: Array<number> = []
        let done = 0
        const body = conversation("memory", 1)[0]
        for (const calls of [10_000, 50_000, 100_000]) {
          const sessions = (calls - done) / 10
          await together(sessions, 32, async (session) => {
            const id = `memory-${calls}-${session}`
            for (let call = 0; call < 10; call++) await post(callsAt(gateway, id), body)
            await post(`${gateway.url}/sessions/${id}/end`, "{}")
          })
          done = calls
          const { heapUsed, rss } = await gateway.memory()
          heaps.push(heapUsed)
          details[`heap at ${calls}`] = megabytes(heapUsed)
          details[`process at ${calls}`] = megabytes(rss)
        }
        return { value: (heaps[2] - heaps[0]) / 1e6, details }
      }),
  }),
]

/**
 * Says on paper how far a cluster goes: simulates workers, the client and the database, with the costs that the benchmark
 * `dispatcher-cluster` measured, and prints the speed for 1 to 1,000 workers. It draws no random numbers and reads no clock.
 *
 *   node bench/clusterSimulation.ts [SECONDS_A_JOB [SLOTS]]
 *
 * The model: each worker has some slots, and an empty slot takes the next job from the queue. The database is a server
 * with some cores: each job costs it some CPU time in several statements, and each worker costs it something all the time,
 * since it polls and renews. A worker's core and the client's core are servers, too. Jobs wait in line for each of them.
 */
import { fileURLToPath } from "node:url"

/** The measured costs of one job and of one second, in seconds of CPU time, and the cores of the database's machine. */
export interface Costs {
  readonly databasePerJob: number
  readonly databasePerWorkerSecond: number
  readonly workerPerJob: number
  readonly clientPerJob: number
  readonly databaseCores: number
}

export interface Simulated {
  /** Jobs a second, all workers together. */
  readonly speed: number
  /** The speed as a share of that of workers which only work. */
  readonly efficiency: number
  /** The share of the database's time in which it computes. */
  readonly load: number
}

interface Plan {
  readonly workers: number
  readonly slots: number
  /** The time that a job waits or computes, apart from what the cluster costs. */
  readonly secondsPerJob: number
}

/** A binary heap of the moments at which servers or slots become free, the earliest first. */
class Moments {
  readonly #items: Array<readonly [time: number, owner: number]> = []

  get size(): number {
    return this.#items.length
  }

  add(time: number, owner: number): void {
    const items = this.#items
    let at = items.push([time, owner]) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (items[above][0] <= items[at][0]) break
      ;[items[above], items[at]] = [items[at], items[above]]
      at = above
    }
  }

  take(): readonly [time: number, owner: number] {
    const items = this.#items
    const [first] = items
    const last = items.pop()
    if (last === undefined) throw new Error("the heap is empty")
    if (items.length === 0) return first
    items[0] = last
    for (let at = 0; ;) {
      let least = at
      for (const below of [2 * at + 1, 2 * at + 2])
        if (below < items.length && items[below][0] < items[least][0]) least = below
      if (least === at) return first
      ;[items[least], items[at]] = [items[at], items[least]]
      at = least
    }
  }
}

/** Simulates until each slot has done `rounds` jobs on average, and leaves the first quarter of the jobs out. */
export const simulate = (costs: Costs, { workers, slots, secondsPerJob }: Plan, rounds = 20): Simulated => {
  // Workers cost the database time even while they wait, so only the rest of its time is left for jobs.
  const standing = workers * costs.databasePerWorkerSecond
  const capacity = Math.max(0, costs.databaseCores - standing)
  if (capacity < 1e-3) return { speed: 0, efficiency: 0, load: 1 }
  const databaseSeconds = costs.databasePerJob / capacity
  const free = new Moments()
  for (let slot = 0; slot < workers * slots; slot++) free.add(0, slot % workers)
  const workerFree = new Float64Array(workers)
  let databaseFree = 0
  let clientFree = 0
  const total = workers * slots * rounds
  const ends = new Float64Array(total)
  for (let job = 0; job < total; job++) {
    const [time, worker] = free.take()
    // The client and the database hand the job out, the worker's core does its part, and the job itself takes its time.
    clientFree = Math.max(clientFree, time) + costs.clientPerJob
    databaseFree = Math.max(databaseFree, clientFree) + databaseSeconds
    workerFree[worker] = Math.max(workerFree[worker], databaseFree) + costs.workerPerJob
    ends[job] = workerFree[worker] + secondsPerJob
    free.add(ends[job], worker)
  }
  ends.sort()
  const from = total >> 2
  const to = total - from
  const speed = (to - from) / (ends[to] - ends[from])
  const ideal = (workers * slots) / secondsPerJob
  return {
    speed,
    efficiency: speed / ideal,
    load: Math.min(1, (standing + speed * costs.databasePerJob) / costs.databaseCores),
  }
}

/** The largest number of workers that still reach nine tenths of the speed of workers which only work. */
export const kneeOf = (costs: Costs, plan: Omit<Plan, "workers">, most = 1000): number => {
  let good = 0
  let bad = most + 1
  while (bad - good > 1) {
    const workers = (good + bad) >> 1
    if (simulate(costs, { ...plan, workers }).efficiency >= 0.9) good = workers
    else bad = workers
  }
  return good
}

/**
 * The costs that `node bench/run.ts --only dispatcher-cluster` measured on a busy machine with two cores of an AMD EPYC: 13.2 ms for a job
 * and 8 ms a second for one worker and one client in the database, and 22.8 ms for a job in worker and client together. The client's
 * part, 7 ms, is what 300 jobs added to the CPU time of `effect eval`.
 */
export const measured: Costs = {
  databasePerJob: 0.0132,
  databasePerWorkerSecond: 0.008,
  workerPerJob: 0.0158,
  clientPerJob: 0.007,
  databaseCores: 8,
}

const print = (secondsPerJob: number, slots: number): void => {
  const plan = { slots, secondsPerJob }
  console.log(
    `jobs of ${secondsPerJob} s, ${slots} at once on each worker, a database with ${measured.databaseCores} cores`,
  )
  console.log("| workers | jobs/s | of the ideal | load of the database |")
  console.log("| ---: | ---: | ---: | ---: |")
  for (const workers of [1, 2, 4, 10, 30, 100, 300, 1000]) {
    const { speed, efficiency, load } = simulate(measured, { ...plan, workers })
    const percent = (share: number): string => `${Math.round(share * 100)} %`
    console.log(`| ${workers} | ${speed.toPrecision(3)} | ${percent(efficiency)} | ${percent(load)} |`)
  }
  console.log(`the knee (nine tenths of the ideal): ${kneeOf(measured, plan)} workers\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [secondsPerJob, slots = 4] = process.argv.slice(2).map(Number)
  for (const seconds of secondsPerJob === undefined ? [3, 30, 300] : [secondsPerJob]) print(seconds, slots)
}

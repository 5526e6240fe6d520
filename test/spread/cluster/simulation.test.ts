import { assert, describe, it } from "vitest"
import { type Costs, kneeOf, measured, simulate } from "../../../bench/clusterSimulation.ts"

const free: Costs = {
  databasePerJob: 0,
  databasePerWorkerSecond: 0,
  workerPerJob: 0,
  clientPerJob: 0,
  databaseCores: 1,
}

describe("the simulation of a cluster", () => {
  it("has the speed of the workers if nothing costs anything", () => {
    const { speed, efficiency } = simulate(free, { workers: 7, slots: 3, secondsPerJob: 2 })
    assert.closeTo(speed, 10.5, 0.6)
    assert.closeTo(efficiency, 1, 0.06)
  })

  it("has the speed of whatever is slowest: the database, the client, or a worker's core", () => {
    const plan = { workers: 50, slots: 4, secondsPerJob: 1 }
    assert.closeTo(simulate({ ...free, databasePerJob: 0.1 }, plan).speed, 10, 0.1)
    assert.closeTo(simulate({ ...free, databasePerJob: 0.1, databaseCores: 5 }, plan).speed, 50, 0.5)
    assert.closeTo(simulate({ ...free, clientPerJob: 0.05 }, plan).speed, 20, 0.2)
    assert.closeTo(simulate({ ...free, workerPerJob: 0.5 }, plan).speed, 100, 2)
    // Half of the only core is spent on fifty workers that only exist.
    const standing = { ...free, databasePerJob: 0.1, databasePerWorkerSecond: 0.01 }
    assert.closeTo(simulate(standing, plan).speed, 5, 0.1)
  })

  it("finds the knee, which is later for longer jobs", () => {
    const [short, long] = [3, 30].map((secondsPerJob) => kneeOf(measured, { slots: 4, secondsPerJob }))
    assert.isAbove(short, 10)
    assert.isAbove(long, 3 * short)
  })
})

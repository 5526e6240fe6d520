import { Effect } from "effect"
import type { Program } from "../backend/Backend.ts"
import { LearningError, type Metrics } from "./Algorithm.ts"

/** Means of an update's metrics, over as many updates as there were since they were last taken. */
export class Averages {
  private readonly sums = new Map<string, { sum: number; count: number }>()
  private broken: { readonly name: string; readonly value: number } | undefined

  add(name: string, value: number): void {
    const entry = this.sums.get(name)
    if (entry === undefined) {
      this.sums.set(name, { sum: value, count: 1 })
    } else {
      entry.sum += value
      entry.count++
    }
    if (value - value !== 0) this.broken ??= { name, value }
  }

  addAll(metrics: Metrics = {}): void {
    for (const [name, value] of Object.entries(metrics)) this.add(name, value)
  }

  /** What a program says of each of its minibatches, as their mean; but for what it says of each row. */
  addResults({ results, iterations }: Program, except?: string): void {
    const count = iterations()
    for (const name in results) {
      if (name === except) continue
      const values = results[name]
      let sum = 0
      for (let index = 0; index < count; index++) sum += values[index]
      this.add(name, sum / count)
    }
  }

  /** Fails once anything that was added is no finite number; `when` is for the message. */
  checkFinite(when: string): Effect.Effect<void, LearningError> {
    if (this.broken === undefined) return Effect.void
    const { name, value } = this.broken
    const message = `${when}: ${name} is ${value}: the training has diverged; a lower learning_rate may help`
    return Effect.fail(new LearningError({ message }))
  }

  take(): Metrics {
    const metrics: Record<string, number> = {}
    for (const [name, { sum, count }] of this.sums) metrics[name] = sum / count
    this.sums.clear()
    return metrics
  }
}

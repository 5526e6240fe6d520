import { Effect } from "effect"
import type { Program } from "../../tensor/backend/Backend.ts"
import { LearningError, type Metrics } from "./Learner.ts"
import { ownPrefix } from "./ownLoss.ts"

/** Averages the metrics of a learner's updates in memory; `checkFinite` fails if one was not finite. */
export class Averages {
  private readonly sums = new Map<string, { sum: number; count: number }>()
  private firstNotFinite: { readonly name: string; readonly value: number } | undefined

  add(name: string, value: number): void {
    const entry = this.sums.get(name)
    if (entry === undefined) {
      this.sums.set(name, { sum: value, count: 1 })
    } else {
      entry.sum += value
      entry.count++
    }
    // If the user's own loss is not finite, the algorithm's metrics soon are not, either, so report the user's loss.
    if (!Number.isFinite(value) && (this.firstNotFinite === undefined || name.startsWith(ownPrefix)))
      this.firstNotFinite = { name, value }
  }

  addAll(metrics: Metrics = {}): void {
    for (const [name, value] of Object.entries(metrics)) this.add(name, value)
  }

  /**
   * Adds the mean of each of a program's results over the minibatches of its last run (an update can end early).
   * `except` names a result to skip, because it has one number for each row instead of one for each minibatch.
   */
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

  /** Fails if any value added so far was not finite. `when` begins the error message, such as `update 3`. */
  checkFinite(when: string): Effect.Effect<void, LearningError> {
    if (this.firstNotFinite === undefined) return Effect.void
    const { name, value } = this.firstNotFinite
    const message = name.startsWith(ownPrefix)
      ? `${when}: ${name} is ${value}: your own loss, algorithm.${name.slice(ownPrefix.length)}, gives no finite number; look for a division by 0 or a logarithm of 0 in it, or lower the learning_rate`
      : `${when}: ${name} is ${value}: the training has diverged; a lower learning_rate may help`
    return Effect.fail(new LearningError({ message }))
  }

  /** Returns the averages since the last call, and starts over. What `checkFinite` reports does not change. */
  take(): Metrics {
    const metrics: Record<string, number> = {}
    for (const [name, { sum, count }] of this.sums) metrics[name] = sum / count
    this.sums.clear()
    return metrics
  }
}

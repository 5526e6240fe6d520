import { Clock, Effect } from "effect"
import type { Sink } from "./Recorder.ts"
import type { RunEvent } from "./RunEvent.ts"

export interface ProgressOptions {
  readonly write: (text: string) => Effect.Effect<void>
  /** A terminal gets a line that is drawn over and over; anything else gets a line a validation. */
  readonly isTerminal: boolean
  readonly columns: number
}

const redrawMillis = 100

/** The sink for who is watching: steps, speed, mean return, the last validation, time left. */
export const progress =
  ({ write, isTerminal, columns }: ProgressOptions): Sink =>
  (_, about) =>
    Effect.gen(function* () {
      const startedAt = yield* Clock.currentTimeMillis
      const firstStep = about.resumedFromStep ?? 0
      let step = firstStep
      let meanReturn: number | undefined
      let validation: number | undefined
      let drawnAt = 0

      const look = (event: RunEvent): void => {
        if (event._tag === "UpdateApplied") {
          step = event.step
          meanReturn = event.metrics["charts/episodic_return"] ?? meanReturn
        }
        if (event._tag === "ValidationEnded") validation = event.meanReturn
      }

      const line = (now: number): string => {
        const seconds = Math.max(1e-3, (now - startedAt) / 1000)
        const speed = (step - firstStep) / seconds
        const left = speed > 0 ? Math.max(0, about.totalSteps - step) / speed : Infinity
        const parts = [
          `${about.algorithm} on ${about.env}`,
          `${thousands(step)} of ${thousands(about.totalSteps)} steps (${Math.floor((100 * step) / about.totalSteps)} %)`,
          `${thousands(Math.round(speed))}/s`,
          meanReturn === undefined ? undefined : `return ${meanReturn.toFixed(1)}`,
          validation === undefined ? undefined : `validation ${validation.toFixed(1)}`,
          Number.isFinite(left) && step < about.totalSteps ? `${duration(left)} left` : undefined,
        ]
        return parts.filter((part) => part !== undefined).join("  ")
      }

      const draw = Effect.fnUntraced(function* (now: number) {
        drawnAt = now
        yield* write(`\r\u001b[2K${line(now).slice(0, columns - 1)}`)
      })

      return {
        emit: Effect.fnUntraced(function* (events) {
          events.forEach(look)
          const now = yield* Clock.currentTimeMillis
          const last = events.at(-1)
          if (isTerminal) {
            if (last?._tag === "RunEnded") yield* Effect.andThen(draw(now), write("\n"))
            else if (now - drawnAt >= redrawMillis) yield* draw(now)
          } else if (events.some((event) => event._tag === "ValidationEnded")) yield* write(`${line(now)}\n`)
        }),
        flush: Effect.void,
      }
    })

const thousands = (value: number): string => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",")

const duration = (seconds: number): string => {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}

/**
 * Makes tasks in which the agent changes a calendar by calling tools. A task lists requests. The score is 1 if the final
 * calendar equals the one that results from the requests, whichever tools were called; otherwise 0.
 *
 * @example
 * ```yaml
 * train_dataset: { type: calendar, num_tasks: 1000, seed: 1, requests: 3 }
 * ```
 */
import { Schema } from "effect"
import { intBetween, withDefault } from "../../../base/config/fields.ts"
import * as EnvTool from "../EnvTool.ts"
import type { TextEnv } from "../TextEnv.ts"
import { ends, game, continues } from "./aloud.ts"
import * as Week from "./calendar.ts"
import { levelFields, levelKind } from "./levels.ts"

const day = Schema.Literals(Week.days)
const hour = intBetween(Week.opens, Week.closes - 1)
const hours = intBetween(1, Week.closes - Week.opens)

const unknown = (id: number) => ({ problem: `There is no event with the id ${id}; list_events says which there are.` })

const tools = [
  EnvTool.make({
    name: "list_events",
    description: "The events of a day, in their order.",
    parameters: Schema.Struct({ day }),
    run: (calendar: Week.Calendar, about) => ({
      state: calendar,
      content: calendar
        .filter((event) => event.day === about.day)
        .toSorted((a, b) => a.start - b.start)
        .map(({ id, title, start, hours: length }) => ({ id, title, start, end: start + length })),
    }),
  }),
  EnvTool.make({
    name: "add_event",
    description: `Adds an event; days go from ${Week.opens} to ${Week.closes}, and no two events are at the same time.`,
    parameters: Schema.Struct({ title: Schema.NonEmptyString, day, start: hour, hours }),
    run: (calendar: Week.Calendar, added) => {
      const why = Week.hindrance(calendar, added)
      if (why !== undefined) return { problem: `It can't be added: ${why}.` }
      const id = Week.nextId(calendar)
      return { state: [...calendar, { id, ...added }], content: { id } }
    },
  }),
  EnvTool.make({
    name: "move_event",
    description: "Moves an event to another time; it stays as long as it is.",
    parameters: Schema.Struct({ id: Schema.Int, day, start: hour }),
    run: (calendar: Week.Calendar, { id, ...to }) => {
      const event = calendar.find((one) => one.id === id)
      if (event === undefined) return unknown(id)
      const moved: Week.Event = { ...event, ...to }
      const why = Week.hindrance(calendar, moved, id)
      if (why !== undefined) return { problem: `It can't be moved: ${why}.` }
      return { state: calendar.map((one) => (one.id === id ? moved : one)), content: "Moved." }
    },
  }),
  EnvTool.make({
    name: "cancel_event",
    description: "Takes an event out of the calendar.",
    parameters: Schema.Struct({ id: Schema.Int }),
    run: (calendar: Week.Calendar, { id }) =>
      calendar.some((one) => one.id === id)
        ? { state: calendar.filter((one) => one.id !== id), content: "Cancelled." }
        : unknown(id),
  }),
]

export interface CalendarTaskOptions {
  readonly id: string
  readonly plan: Week.WeekPlan
  readonly metadata?: Readonly<Record<string, unknown>>
}

export const make = ({ id, plan, metadata = {} }: CalendarTaskOptions): TextEnv =>
  game<Week.Calendar>({
    id,
    type: "calendar",
    metadata,
    maxSteps: 10,
    ...EnvTool.all(tools),
    begin: () => ({
      state: plan.before,
      observation: [
        `Keep a calendar from Monday to Friday, from ${Week.opens} to ${Week.closes} each day, by calling functions. Do this, in this order:`,
        ...plan.requests.map((request, at) => `${at + 1}. ${request}`),
        "Then answer: done",
      ].join("\n"),
    }),
    step: (calendar, action) => {
      if (!/\bdone\b/i.test(action)) {
        const names = tools.map(({ spec }) => spec.name).join(", ")
        return continues(calendar, `Call functions (${names}), and answer "done" when all is done.`)
      }
      const wrong = Week.differences(calendar, plan.after)
      return ends(calendar, {
        score: wrong.length === 0 ? 1 : 0,
        message:
          wrong.length === 0 ? "The calendar is as it should be." : `The calendar is wrong; ${wrong.join("; ")}.`,
      })
    },
  })

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("calendar"), "calendar"),
  ...levelFields,
  /** The number of events in the calendar at the start. */
  events: withDefault(intBetween(Week.mostRequests + 1, Week.mostEvents), Week.mostEvents),
  /** The number of requests in each task. */
  requests: withDefault(intBetween(1, Week.mostRequests), 2),
})
export const kind = levelKind("calendar", Config, ({ events, requests }, id, level, random) =>
  make({ id, plan: Week.drawn(events, requests, random), metadata: { level, requests } }),
)

/** Defines a week's calendar with events, draws requests that change it, and compares two calendars. */
import type { Stream } from "../../../base/rng/Rng.ts"
import { oneOf, shuffled } from "./levels.ts"

export const days = ["monday", "tuesday", "wednesday", "thursday", "friday"] as const
type Day = (typeof days)[number]

// The hours of a day at which the calendar begins and ends.
export const opens = 9
export const closes = 17

export interface Event {
  readonly id: number
  readonly title: string
  readonly day: Day
  /** The hour at which the event starts. */
  readonly start: number
  readonly hours: number
}

export type Calendar = ReadonlyArray<Event>

type Slot = Pick<Event, "day" | "start" | "hours">

/** Returns the reason why an event cannot be at a time; undefined if it can. The event with the id `id` is ignored. */
export const hindrance = (calendar: Calendar, { day, start, hours }: Slot, id?: number): string | undefined => {
  if (start < opens || start + hours > closes) return `events are between ${opens} and ${closes}`
  const other = calendar.find(
    (event) => event.id !== id && event.day === day && event.start < start + hours && start < event.start + event.hours,
  )
  return other === undefined
    ? undefined
    : `"${other.title}" (id ${other.id}) is there from ${other.start} to ${other.start + other.hours}`
}

/**
 * Returns the first hour of a day from which `hours` hours are free; undefined if there is none. The event with the id `id`
 * is ignored.
 */
const earliest = (calendar: Calendar, day: Day, hours: number, id?: number): number | undefined => {
  for (let start = opens; start + hours <= closes; start++) {
    if (hindrance(calendar, { day, start, hours }, id) === undefined) return start
  }
  return undefined
}

export const nextId = (calendar: Calendar): number => Math.max(0, ...calendar.map(({ id }) => id)) + 1

const titles = ["dentist", "review", "lunch with Mia", "haircut", "choir", "interview", "planning", "call with Omar"]
const newTitles = ["piano lesson", "workshop", "check-up", "walk with Lea", "reading hour", "rehearsal"]

/** A tool call that fulfils a request, or a part of it. */
interface CalendarCall {
  readonly name: "add_event" | "move_event" | "cancel_event"
  readonly arguments: Readonly<Record<string, string | number>>
}

/** A request, the tool call that fulfils it, and the calendar after that call. */
interface CalendarRequest {
  readonly request: string
  readonly call: CalendarCall
  readonly after: Calendar
}

const named = (day: string): string => `${day[0].toUpperCase()}${day.slice(1)}`

const hoursOf = (hours: number): string => (hours === 1 ? "one hour" : `${hours} hours`)

/** Draws a request; undefined if the drawn one cannot be fulfilled. */
const drawnRequest = (calendar: Calendar, random: Stream): CalendarRequest | undefined => {
  const event = oneOf(calendar, random)
  const day = oneOf(days, random)
  switch (random.integer(3)) {
    case 0: {
      const { id } = event
      return {
        request: `Cancel "${event.title}".`,
        call: { name: "cancel_event", arguments: { id } },
        after: calendar.filter((other) => other.id !== id),
      }
    }
    case 1: {
      const { id, title, hours } = event
      const start = earliest(calendar, day, hours, id)
      if (start === undefined || day === event.day) return undefined
      return {
        request: `Move "${title}" to ${named(day)}, as early as it fits.`,
        call: { name: "move_event", arguments: { id, day, start } },
        after: calendar.map((other) => (other.id === id ? { ...other, day, start } : other)),
      }
    }
    default: {
      const hours = 1 + random.integer(3)
      const start = earliest(calendar, day, hours)
      const title = newTitles.find((one) => calendar.every((other) => other.title !== one))
      if (start === undefined || title === undefined) return undefined
      return {
        request: `Add "${title}" of ${hoursOf(hours)} on ${named(day)}, as early as it fits.`,
        call: { name: "add_event", arguments: { title, day, start, hours } },
        after: [...calendar, { id: nextId(calendar), title, day, start, hours }],
      }
    }
  }
}

/** A calendar, requests, and the calls that fulfil them in order. */
export interface WeekPlan {
  readonly before: Calendar
  readonly requests: ReadonlyArray<string>
  readonly calls: ReadonlyArray<CalendarCall>
  readonly after: Calendar
}

/** Draws a plan: a calendar with `events` events, and requests that together change it. */
export const drawn = (events: number, requests: number, random: Stream): WeekPlan => {
  const before: Array<Event> = []
  for (const title of shuffled(titles, random).slice(0, events)) {
    for (;;) {
      const slot = {
        day: oneOf(days, random),
        start: opens + random.integer(closes - opens),
        hours: 1 + random.integer(2),
      }
      if (hindrance(before, slot) !== undefined) continue
      before.push({ id: before.length + 1, title, ...slot })
      break
    }
  }
  let drawnRequests: Array<CalendarRequest> = []
  let calendar: Calendar = before
  // If requests cancel each other out, no call is needed to fulfil them, so draw again.
  while (differences(before, calendar).length === 0) {
    drawnRequests = []
    calendar = before
    while (drawnRequests.length < requests) {
      const next = drawnRequest(calendar, random)
      if (next === undefined) continue
      drawnRequests.push(next)
      calendar = next.after
    }
  }
  return {
    before,
    requests: drawnRequests.map(({ request }) => request),
    calls: drawnRequests.map(({ call }) => call),
    after: calendar,
  }
}

/** The largest number of events: the number of different titles. */
export const mostEvents = titles.length
/** The largest number of requests in a task. All of them can be additions, for which `newTitles` must be sufficient. */
export const mostRequests = 5

/** Lists the differences between the calendar `is` and the calendar `should`: missing events and wrong ones. */
export const differences = (is: Calendar, should: Calendar): ReadonlyArray<string> => {
  const line = ({ title, day, start, hours }: Event): string =>
    `"${title}" on ${named(day)} from ${start} to ${start + hours}`
  const [present, wanted] = [is.map(line), should.map(line)]
  return [
    ...wanted.filter((one) => !present.includes(one)).map((one) => `missing: ${one}`),
    ...present
      .filter((one, at) => !wanted.includes(one) || present.indexOf(one) !== at)
      .map((one) => `too much: ${one}`),
  ]
}

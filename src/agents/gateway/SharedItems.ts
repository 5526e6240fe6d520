/**
 * Gives the items of a list the same objects as in an earlier list, where they are equal. The requests of a session mostly repeat
 * the messages of the request before and add some. With the same objects, a message is in memory once, and what was computed
 * for it, such as its size, is found by the object.
 *
 * @example
 * ```ts
 * const shared = new SharedItems<{ readonly role: string; readonly content: string }>()
 * const first = shared.share([{ role: "user", content: "Hello" }], 0)
 * const second = shared.share([{ role: "user", content: "Hello" }, { role: "assistant", content: "Hi." }], 1)
 * second.items[0] === first.items[0] // true
 * second.start // { list: 0, length: 1 }
 * ```
 */
import { isPlain } from "../../base/config/plain.ts"

/** The number of latest lists that are kept: those of the conversations that an agent has at the same time. */
const mostLists = 4

/** The beginning that a list has in common with an earlier one. */
interface SharedStart {
  /** The number by which the earlier list was added. */
  readonly list: number
  /** The number of items in common; at least 1. */
  readonly length: number
}

/** Tells whether two values have the same JSON, also the same order of keys, which a model gets to see. */
export const sameJson = (one: unknown, other: unknown): boolean => {
  if (one === other) return true
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, at) => sameJson(item, other[at]))
  }
  if (!isPlain(one) || !isPlain(other)) return false
  const keys = Object.keys(one)
  const others = Object.keys(other)
  return keys.length === others.length && keys.every((key, at) => key === others[at] && sameJson(one[key], other[key]))
}

const commonLength = (one: ReadonlyArray<unknown>, other: ReadonlyArray<unknown>): number => {
  const most = Math.min(one.length, other.length)
  let length = 0
  while (length < most && sameJson(one[length], other[length])) length++
  return length
}

export class SharedItems<A> {
  /** The latest lists, the oldest first. */
  private lists: ReadonlyArray<{ readonly number: number; readonly items: ReadonlyArray<A> }> = []
  private readonly isKept: (item: A) => boolean

  /** Items for which `isKept` is false are not kept, nor are those after them. */
  constructor(isKept: (item: A) => boolean = () => true) {
    this.isKept = isKept
  }

  /** Adds a list by a number. Returns it with the objects of earlier lists, and the longest beginning that it shares with one of them. */
  share(items: ReadonlyArray<A>, number = 0): { readonly items: ReadonlyArray<A>; readonly start: SharedStart | null } {
    let [length, nearest] = [0, this.lists.at(-1)]
    for (const list of this.lists.toReversed()) {
      const common = commonLength(list.items, items)
      if (common > length) [length, nearest] = [common, list]
    }
    const shared =
      nearest === undefined || length === 0 ? items : [...nearest.items.slice(0, length), ...items.slice(length)]
    const end = shared.findIndex((item, at) => at >= length && !this.isKept(item))
    // A list that goes on from another one takes its place.
    const others = this.lists.filter((list) => list !== nearest || length < list.items.length)
    this.lists = [...others, { number, items: end < 0 ? shared : shared.slice(0, end) }].slice(-mostLists)
    return { items: shared, start: nearest === undefined || length === 0 ? null : { list: nearest.number, length } }
  }
}

/**
 * Keeps the states of an automaton and the calls of their threads for later texts, as long as there is room for them. Equal ones
 * are the same object.
 */
import { AutomatonState, type Stack, type Thread } from "./AutomatonState.ts"

/** The largest size of the states and masks that are kept, in bytes. */
const mostKeptBytes = 16 * 2 ** 20
/** About the size of a state with its transitions, of each of its threads, and of a call, in bytes. */
const stateBytes = 2300
const threadBytes = 96
const stackBytes = 192

export class StateStore {
  private readonly states = new Map<string, AutomatonState>()
  private readonly stacks = new Map<string, Stack>()
  private stackCount = 0
  private keptBytes = 0
  private full = false

  /** Whether nothing more is kept until there is room again. */
  get isFull(): boolean {
    return this.full
  }

  /** Makes room to keep states and masks. If little is left, all are forgotten and made anew when they are needed. */
  makeRoom(): void {
    if (this.keptBytes < mostKeptBytes / 2) return
    // A text still has its current state, which must not keep the others in memory.
    for (const state of this.states.values()) state.next = undefined
    this.states.clear()
    this.stacks.clear()
    this.keptBytes = 0
    this.full = false
  }

  /** Counts bytes that are to be kept. Returns whether there is room for them. */
  keeps(bytes: number): boolean {
    if (this.keptBytes + bytes > mostKeptBytes) this.full = true
    if (!this.full) this.keptBytes += bytes
    return !this.full
  }

  /** Returns the state of these threads, by their keys. */
  state(reading: ReadonlyMap<string, Thread>, isEnd: boolean): AutomatonState {
    const key = `${[...reading.keys()].sort().join()}${isEnd ? "." : ""}`
    const known = this.states.get(key)
    if (known !== undefined) return known
    const state = new AutomatonState([...reading.values()], isEnd)
    if (this.keeps(stateBytes + threadBytes * reading.size)) this.states.set(key, state)
    return state
  }

  /** Returns the calls after one more, which returns to the state `to`. */
  push(parent: Stack | null, to: number): Stack {
    const key = `${to} ${parent?.id ?? ""}`
    const known = this.stacks.get(key)
    if (known !== undefined) return known
    const stack = { id: this.stackCount++, depth: (parent?.depth ?? 0) + 1, to, parent }
    this.stacks.set(key, stack)
    // Calls are kept in any case, so that equal ones are found; they count so that there is room for them again soon.
    this.keeps(stackBytes)
    return stack
  }
}

/**
 * Keeps the versions of the weights: of the base model, and of each adapter. A request uses the version with which it began
 * until its end. A replaced version is removed when its last request ends; only then are its slot and its part of the cache
 * freed.
 */
import type { PagedCache, Root } from "./PagedCache.ts"
import type { WeightsUsed } from "./EngineService.ts"

export interface Version {
  readonly used: WeightsUsed
  /** The slot of the adapter; −1 for the base model. */
  readonly slot: number
  root: Root
  /** The number of requests in progress that use this version. */
  users: number
  /** Whether new requests use this version. */
  current: boolean
}

export class ModelVersions {
  private readonly cache: PagedCache
  private base: Version
  private readonly adapters = new Map<string, Version>()
  private readonly freeSlots: Array<number>
  /** The number of replaced versions of adapters that requests still use. */
  private leaving = 0

  constructor(cache: PagedCache, model: string, step: number, adapterSlots: number) {
    this.cache = cache
    this.base = this.make({ model, step, baseStep: step }, -1)
    this.freeSlots = Array.from({ length: adapterSlots }, (_, index) => adapterSlots - 1 - index)
  }

  private make(used: WeightsUsed, slot: number): Version {
    return { used, slot, root: this.cache.makeRoot(), users: 0, current: true }
  }

  get baseModel(): WeightsUsed {
    return this.base.used
  }

  /** The loaded adapters, in the order of their names. */
  get loadedAdapters(): ReadonlyArray<WeightsUsed> {
    return [...this.adapters.values()].map(({ used }) => used).sort((a, b) => (a.model < b.model ? -1 : 1))
  }

  /** Returns the version that a new request for this name uses. */
  find(name: string): Version | undefined {
    return name === this.base.used.model ? this.base : this.adapters.get(name)
  }

  take(version: Version): void {
    version.users++
  }

  give(version: Version): void {
    if (--version.users > 0 || version.current) return
    this.leaving--
    this.remove(version)
  }

  /**
   * Returns the slot for a new version of an adapter. Returns `wait` if a slot becomes free when requests of replaced
   * versions end, `drain` if one becomes free when the requests of this adapter end, and `full` if no slot becomes free.
   */
  placeFor(name: string): number | "wait" | "drain" | "full" {
    const free = this.freeSlots.at(-1)
    if (free !== undefined) return free
    const old = this.adapters.get(name)
    if (old !== undefined && old.users === 0) return old.slot
    if (this.leaving > 0) return "wait"
    return old === undefined ? "full" : "drain"
  }

  /**
   * Makes the weights in slot `slot` the adapter's current version. An earlier version leaves when its last request ends.
   */
  replace(name: string, step: number, slot: number): void {
    const old = this.adapters.get(name)
    this.adapters.set(name, this.make({ model: name, step, baseStep: this.base.used.step }, slot))
    if (this.freeSlots.at(-1) === slot) this.freeSlots.pop()
    if (old === undefined) return
    if (old.slot === slot) this.cache.forget(old.root)
    else this.retire(old)
  }

  /** Removes an adapter. Returns whether it existed. */
  unload(name: string): boolean {
    const old = this.adapters.get(name)
    if (old === undefined) return false
    this.adapters.delete(name)
    this.retire(old)
    return true
  }

  /** Replaces the base model's version. No request may be using a version. */
  replaceBase(step: number): void {
    this.cache.forget(this.base.root)
    this.base = this.make({ ...this.base.used, step, baseStep: step }, -1)
    for (const [name, version] of this.adapters) {
      this.cache.forget(version.root)
      this.adapters.set(name, this.make({ ...version.used, baseStep: step }, version.slot))
    }
  }

  private retire(version: Version): void {
    version.current = false
    if (version.users === 0) this.remove(version)
    else this.leaving++
  }

  private remove(version: Version): void {
    this.cache.forget(version.root)
    this.freeSlots.push(version.slot)
  }
}

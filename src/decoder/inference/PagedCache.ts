/**
 * Assigns the pages of the cache of keys and values to sequences. A page has room for `pageSize` tokens. This class does not
 * store keys and values; the model's cache does.
 *
 * Full pages of prompts are shared by all sequences that begin with the same tokens. If the rest of a prompt is the beginning
 * of a page in the cache, the sequence copies this beginning into its own page, because it will write after it. So a page is
 * written by at most one sequence, and never while it is shared. If another sequence is computing the next page of a
 * sequence, the sequence waits instead of computing the same page.
 *
 * Only tokens of prompts are shared, not generated tokens. A model computes a prompt page by page and an answer token by
 * token, and these round differently; an answer must not depend on the content of the cache.
 *
 * Pages that no sequence uses keep their tokens until their room is needed. Then the least recently used page is removed
 * first.
 */

/** A page, or the root of a tree of pages. */
interface PageNode {
  /** The pages after this one, by their first token. */
  readonly children: Map<number, Array<CachePage>>
}

/** The root of all sequences that are computed with one version of the weights. */
export interface Root extends PageNode {
  /** Whether pages below the root are kept when no sequence uses them. */
  alive: boolean
}

interface CachePage extends PageNode {
  readonly index: number
  /** The tokens of the prompt in this page: those that are in it, and those that a sequence is computing for it. */
  readonly tokens: Int32Array
  planned: number
  /** The number of these tokens that are already in the cache. */
  ready: number
  /** The number of sequences that use this page. */
  references: number
  parent: PageNode | null
  root: Root | null
  /** The neighbours in the list of unused pages. */
  older: CachePage | null
  newer: CachePage | null
}

/** A sequence of tokens. The first `length` tokens are in the cache. */
export interface Sequence {
  readonly root: Root
  readonly tokens: Int32Array
  /** The number of tokens at the beginning that can be shared. */
  readonly prompt: number
  length: number
  readonly pages: Array<CachePage>
}

interface CacheCounts {
  /** The number of pages that sequences use. */
  readonly used: number
  /** The number of pages that no sequence uses but whose tokens are kept. */
  readonly kept: number
  readonly free: number
}

/** Reads and writes the numbers of pages. */
export interface PageStore {
  readonly pages: number
  readonly pageSize: number
  /** Sets all numbers of a page to zero, so that numbers that are not finite are not passed on to the next sequence. */
  readonly clear: (page: number) => void
  /** Copies the keys and values of the first `tokens` tokens of a page into another page. */
  readonly copy: (from: number, to: number, tokens: number) => void
}

export class PagedCache {
  readonly pageSize: number
  readonly pages: number
  private readonly free: Array<CachePage> = []
  /** The ends of the list of unused pages. In the list, a page comes before the page that precedes it in the tree. */
  private oldest: CachePage | null = null
  private newest: CachePage | null = null
  private kept = 0
  private readonly store: PageStore

  constructor(store: PageStore) {
    this.store = store
    this.pages = store.pages
    this.pageSize = store.pageSize
    for (let index = this.pages - 1; index >= 0; index--) {
      this.free.push({
        index,
        tokens: new Int32Array(this.pageSize),
        planned: 0,
        ready: 0,
        references: 0,
        parent: null,
        root: null,
        older: null,
        newer: null,
        children: new Map(),
      })
    }
  }

  /** Makes the root for the sequences of a new version of the weights. */
  makeRoot(): Root {
    return { children: new Map(), alive: true }
  }

  /** Frees the pages below a root: unused ones now, and the others as soon as their sequences release them. */
  forget(root: Root): void {
    root.alive = false
    for (let page = this.oldest; page !== null;) {
      const next = page.newer
      if (page.root === root) {
        this.unlist(page)
        this.clear(page)
      }
      page = next
    }
  }

  /** The number of pages that sequences can still take. */
  get available(): number {
    return this.free.length + this.kept
  }

  get counts(): CacheCounts {
    return { used: this.pages - this.available, kept: this.kept, free: this.free.length }
  }

  /** Begins a sequence; the first `prompt` elements of `tokens` can be shared. */
  begin(root: Root, tokens: Int32Array, prompt: number): Sequence {
    return { root, tokens, prompt, length: 0, pages: [] }
  }

  /**
   * Counts the full pages at the beginning of a prompt that other sequences are using now, so that sharing them needs no
   * room.
   */
  shared(root: Root, tokens: Int32Array, prompt: number): number {
    const { pageSize } = this
    let count = 0
    for (let node: PageNode = root; (count + 1) * pageSize <= prompt; count++) {
      const page = pageFor(node, tokens, count * pageSize, pageSize)
      if (page === null || page.references === 0 || page.ready < pageSize) break
      node = page
    }
    return count
  }

  /**
   * Takes the next tokens of a sequence's prompt from the cache, as far as it has them. Call it before each computation of
   * prompt tokens. Returns true if the sequence should wait, because another one is computing its next tokens.
   */
  reuse(sequence: Sequence): boolean {
    const { pageSize } = this
    const { tokens, prompt, pages } = sequence
    while (sequence.length < prompt) {
      const at = sequence.length
      const wanted = Math.min(pageSize, prompt - at)
      const page = pageFor(at === 0 ? sequence.root : pages[pages.length - 1], tokens, at, wanted)
      if (page === null) return false
      if (page.ready < wanted) return true
      this.retain(page)
      if (wanted === pageSize) {
        pages.push(page)
      } else {
        // Keep the page while the sequence takes another one, so that it is not evicted for it.
        const own = this.grow(sequence)
        if (own !== null) {
          this.store.copy(page.index, own.index, wanted)
          own.ready = wanted
        }
        this.drop(page)
        if (own === null) return false
      }
      sequence.length += wanted
    }
    return false
  }

  /** Takes pages for the first `length` tokens, as far as there is room. Returns the number of tokens that have pages. */
  extend(sequence: Sequence, length: number): number {
    while (sequence.pages.length * this.pageSize < length && this.grow(sequence) !== null);
    return Math.min(length, sequence.pages.length * this.pageSize)
  }

  /** Records that the keys and values of a sequence's next `count` tokens are now in its pages. */
  fill(sequence: Sequence, count: number): void {
    for (let left = count; left > 0; left--) {
      if (sequence.length < sequence.prompt) sequence.pages[Math.floor(sequence.length / this.pageSize)].ready++
      sequence.length++
    }
  }

  /** Removes all pages from a sequence. The tokens of its prompt stay in the cache until their room is needed. */
  release(sequence: Sequence): void {
    // Release the last page first, so that in the list each page comes before its predecessor in the tree.
    for (let page = sequence.pages.pop(); page !== undefined; page = sequence.pages.pop()) {
      page.planned = page.ready
      this.drop(page)
    }
    sequence.length = 0
  }

  /** Adds a page for the next tokens of a sequence. Returns null if there is no page left. */
  private grow({ root, tokens, prompt, pages }: Sequence): CachePage | null {
    const page = this.free.pop() ?? this.evict()
    if (page === null) return null
    this.store.clear(page.index)
    const at = pages.length * this.pageSize
    page.references = 1
    page.planned = Math.max(0, Math.min(this.pageSize, prompt - at))
    for (let index = 0; index < page.planned; index++) page.tokens[index] = tokens[at + index]
    if (page.planned > 0) {
      page.root = root
      page.parent = pages.length === 0 ? root : pages[pages.length - 1]
      const siblings = page.parent.children.get(tokens[at])
      if (siblings === undefined) page.parent.children.set(tokens[at], [page])
      else siblings.push(page)
    }
    pages.push(page)
    return page
  }

  /** Removes the least recently used of the unused pages from the cache. Returns null if all pages are used. */
  private evict(): CachePage | null {
    const page = this.oldest
    if (page === null) return null
    this.unlist(page)
    this.clear(page)
    return this.free.pop() ?? null
  }

  private retain(page: CachePage): void {
    if (page.references++ === 0) this.unlist(page)
  }

  private drop(page: CachePage): void {
    if (--page.references > 0) return
    if (page.root?.alive === true && page.ready > 0) this.list(page)
    else this.clear(page)
  }

  /** Removes a page from the tree and makes it free. */
  private clear(page: CachePage): void {
    const first = page.tokens[0]
    const siblings = page.parent?.children.get(first)
    if (siblings !== undefined) {
      const rest = siblings.filter((other) => other !== page)
      if (rest.length > 0) page.parent?.children.set(first, rest)
      else page.parent?.children.delete(first)
    }
    page.children.clear()
    page.planned = 0
    page.ready = 0
    page.parent = null
    page.root = null
    this.free.push(page)
  }

  /** Adds an unused page to the list, as the most recently used one. */
  private list(page: CachePage): void {
    page.older = this.newest
    if (this.newest === null) this.oldest = page
    else this.newest.newer = page
    this.newest = page
    this.kept++
  }

  private unlist(page: CachePage): void {
    if (page.older === null) this.oldest = page.newer
    else page.older.newer = page.newer
    if (page.newer === null) this.newest = page.older
    else page.newer.older = page.older
    page.older = null
    page.newer = null
    this.kept--
  }
}

/**
 * Returns the page below `node` that has, or will have, `count` tokens from index `at` on. Prefers a page that already has
 * them.
 */
const pageFor = (node: PageNode, tokens: Int32Array, at: number, count: number): CachePage | null => {
  let best: CachePage | null = null
  for (const page of node.children.get(tokens[at]) ?? []) {
    if (page.planned < count || (best !== null && best.ready >= page.ready)) continue
    let index = 0
    while (index < count && page.tokens[index] === tokens[at + index]) index++
    if (index === count) best = page
  }
  return best
}

/**
 * Decides which pages of the cache of keys and values belong to which sequences. A page has room for `pageSize` tokens. It
 * holds no numbers itself: the model's cache does.
 *
 * Full pages of prompts are shared by all sequences that begin with the same tokens. If the rest of a prompt is the beginning
 * of a page in the cache, the sequence copies that beginning into a page of its own, because it will write behind it. So a
 * page is written by one sequence at most, and never while it is shared. A sequence whose next page is being computed by
 * another one waits for it instead of computing the same.
 *
 * Only the tokens of prompts are shared, not generated ones: a model computes a prompt page by page and an answer token by
 * token, which rounds differently, and an answer must not depend on what is in the cache.
 *
 * Pages that no sequence uses keep their tokens until their room is needed; then the least recently used one goes first.
 */

/** A page, or the root of a tree of pages. */
interface PageNode {
  /** The pages that follow this one, by their first token. */
  readonly children: Map<number, Array<CachePage>>
}

/** The beginning of all sequences that one version of the weights computes. */
export interface Root extends PageNode {
  /** Whether the pages below are kept when no sequence uses them. */
  alive: boolean
}

interface CachePage extends PageNode {
  readonly index: number
  /** Tokens of the prompt that are in the page, or will be when the sequence that fills it has computed them. */
  readonly tokens: Int32Array
  planned: number
  /** The number of them that are in the cache. */
  ready: number
  /** The number of sequences that use this page. */
  references: number
  parent: PageNode | null
  root: Root | null
  /** The neighbours in the list of pages that no sequence uses. */
  older: CachePage | null
  newer: CachePage | null
}

/** A sequence of tokens, of which the first `length` are in the cache. */
export interface Sequence {
  readonly root: Root
  readonly tokens: Int32Array
  /** The number of tokens at the beginning that can be shared. */
  readonly prompt: number
  length: number
  readonly pages: Array<CachePage>
}

interface CacheCounts {
  /** Pages of sequences. */
  readonly used: number
  /** Pages that no sequence uses, but whose tokens are kept. */
  readonly kept: number
  readonly free: number
}

/** Says where the numbers of the pages are. */
export interface PageStore {
  readonly pages: number
  readonly pageSize: number
  /** Sets all numbers of a page to zero. A page must not pass on numbers that are not finite. */
  readonly clear: (page: number) => void
  /** Copies the keys and values of the first `tokens` tokens of a page into another page. */
  readonly copy: (from: number, to: number, tokens: number) => void
}

export class PagedCache {
  readonly pageSize: number
  readonly pages: number
  private readonly free: Array<CachePage> = []
  /** The ends of the list of pages that no sequence uses. A page always precedes the page that it follows in the tree. */
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

  /** Makes the root of the sequences that a new version of the weights computes. */
  makeRoot(): Root {
    return { children: new Map(), alive: true }
  }

  /** Frees the pages below a root that no sequence uses, and the others as soon as their sequences release them. */
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

  /** Counts the full pages at the beginning of a prompt that other sequences use now, so that sharing them takes no room. */
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
   * Takes the next tokens of a sequence's prompt from the cache, as far as they are there. Call it before each computation of
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
        // The page stays retained while the sequence takes a page, so that it is not evicted for that.
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

  /** Notes that the keys and values of the next `count` tokens of a sequence are in its pages now. */
  fill(sequence: Sequence, count: number): void {
    for (let left = count; left > 0; left--) {
      if (sequence.length < sequence.prompt) sequence.pages[Math.floor(sequence.length / this.pageSize)].ready++
      sequence.length++
    }
  }

  /** Takes all pages from a sequence. The tokens of its prompt stay in the cache until their room is needed. */
  release(sequence: Sequence): void {
    // The last page comes first, so that in the list each page precedes the one that it follows.
    for (let page = sequence.pages.pop(); page !== undefined; page = sequence.pages.pop()) {
      page.planned = page.ready
      this.drop(page)
    }
    sequence.length = 0
  }

  /** Takes a page for the next tokens of a sequence, if there is one. */
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

  /** Removes the least recently used page from the cache, if no sequence uses one. */
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

  /** Adds a page that no sequence uses to the list, as the most recently used one. */
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

/** Returns the page below `node` that has or will have `count` tokens from index `at` on, if possible one that has them. */
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

import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { PagedCache, type Sequence } from "../src/decoder/inference/PagedCache.ts"
import { tries } from "../test/house/tries.ts"

interface Live {
  readonly sequence: Sequence
  known: number
}

/**
 * A cache whose numbers are the tokens' histories: each entry names all tokens up to its own. So an entry at a wrong place,
 * one that was overwritten, or one of another sequence is seen.
 */
const withHistories = (pages: number, pageSize: number) => {
  const entries = Array.from({ length: pages * pageSize }, () => "")
  const cache = new PagedCache({
    pages,
    pageSize,
    clear: (page) => void entries.fill("", page * pageSize, (page + 1) * pageSize),
    copy: (from, to, tokens) => void entries.copyWithin(to * pageSize, from * pageSize, from * pageSize + tokens),
  })
  return { cache, entries }
}

const reads = Array.from({ length: 8 }, () => "read" as const)
const prompt = fc.oneof(
  fc.constantFrom([0, 1, 0, 1, 1], [0, 1, 0, 1, 1, 0, 1], [0, 1, 0]),
  fc.array(fc.nat(1), { maxLength: 6 }),
)
const command = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("begin" as const), prompt, root: fc.nat(1) }) },
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constantFrom(...reads, "append" as const, "release" as const),
      at: fc.nat(5),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const), root: fc.nat(1) }) },
)

describe("the paged cache", () => {
  it("never leaks, shares a page that is written, or gives a sequence an entry of another history", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 3, max: 12 }),
        fc.integer({ min: 1, max: 4 }),
        fc.array(command, { minLength: 40, maxLength: 120 }),
        (pages, pageSize, commands) => {
          const { cache, entries } = withHistories(pages, pageSize)
          const roots = [cache.makeRoot(), cache.makeRoot()]
          const names = new Map(roots.map((root, index) => [root, index]))
          let live: ReadonlyArray<Live> = []
          const historyOf = ({ tokens, root }: Sequence, length: number): string =>
            `${names.get(root)}:${tokens.subarray(0, length).join()}`
          /** Writes the next entries of a sequence, as a step does. */
          const write = (one: Live, count: number): void => {
            const { sequence } = one
            for (let index = 0; index < count; index++) {
              const at = sequence.length + index
              const page = sequence.pages[Math.floor(at / pageSize)]
              assert.strictEqual(page.references, 1, "a page that is written has one owner")
              entries[page.index * pageSize + (at % pageSize)] = historyOf(sequence, at + 1)
            }
            cache.fill(sequence, count)
          }
          for (const next of commands) {
            if (next.kind === "begin") {
              const tokens = new Int32Array(40)
              tokens.set(next.prompt)
              live = [
                ...live,
                { sequence: cache.begin(roots[next.root], tokens, next.prompt.length), known: next.prompt.length },
              ]
            } else if (next.kind === "forget") {
              // Sequences of the old root go on; new ones must not meet their pages.
              cache.forget(roots[next.root])
              roots[next.root] = cache.makeRoot()
              names.set(roots[next.root], names.size)
            } else if (live.length > 0) {
              const one = live[next.at % live.length]
              const { sequence } = one
              if (next.kind === "release") {
                cache.release(sequence)
                live = live.filter((other) => other !== one)
              } else if (sequence.length < sequence.prompt) {
                const room = sequence.pages.length * pageSize
                const rest = Math.min(room, sequence.prompt) - sequence.length
                if (rest > 0) write(one, 1 + (next.at % rest))
                else if (cache.reuse(sequence)) {
                  const end = Math.min(sequence.length + pageSize, sequence.prompt)
                  const isComputed = live.some(
                    ({ sequence: other }) =>
                      other.length < Math.min(other.prompt, end) &&
                      other.pages.length * pageSize >= end &&
                      historyOf(other, end) === historyOf(sequence, end),
                  )
                  assert.isTrue(isComputed, "a sequence waits only for one that computes its next tokens")
                } else {
                  // The page is written by a later command. If there is no room, a scheduler takes the pages back.
                  const length = Math.min(sequence.length + pageSize, sequence.prompt)
                  if (cache.extend(sequence, length) < length) cache.release(sequence)
                }
              } else if (next.kind === "append" && one.known < 40) {
                sequence.tokens[one.known] = next.at
                one.known++
                if (cache.extend(sequence, sequence.length + 1) === sequence.length + 1) write(one, 1)
                else {
                  cache.release(sequence)
                  live = live.filter((other) => other !== one)
                }
              }
            }
            // Every entry of every sequence is that of its own history.
            const used = new Map<number, number>()
            for (const { sequence } of live) {
              assert.isAtLeast(sequence.pages.length * pageSize, sequence.length)
              for (const page of sequence.pages) used.set(page.index, (used.get(page.index) ?? 0) + 1)
              for (let at = 0; at < sequence.length; at++) {
                const page = sequence.pages[Math.floor(at / pageSize)]
                assert.strictEqual(entries[page.index * pageSize + (at % pageSize)], historyOf(sequence, at + 1))
              }
              for (let at = sequence.length; at < sequence.pages.length * pageSize; at++) {
                const page = sequence.pages[Math.floor(at / pageSize)]
                assert.strictEqual(entries[page.index * pageSize + (at % pageSize)], "", "a new page is clear")
              }
            }
            for (const { sequence } of live)
              for (const page of sequence.pages) assert.strictEqual(page.references, used.get(page.index))
            const { used: usedPages, kept, free } = cache.counts
            assert.strictEqual(usedPages, used.size)
            assert.strictEqual(usedPages + kept + free, pages)
            assert.strictEqual(cache.available, kept + free)
          }
          // At the end all pages can be taken by one sequence, each once.
          for (const { sequence } of live) cache.release(sequence)
          for (const root of roots) cache.forget(root)
          assert.deepStrictEqual(cache.counts, { used: 0, kept: 0, free: pages })
          const last = cache.begin(cache.makeRoot(), new Int32Array(pages * pageSize), 0)
          assert.strictEqual(cache.extend(last, pages * pageSize), pages * pageSize)
          assert.strictEqual(new Set(last.pages.map(({ index }) => index)).size, pages)
        },
      ),
      { numRuns: tries(250) },
    )
  })

  it("evicts the prefix that was not used for the longest time", () => {
    const { cache } = withHistories(3, 1)
    const root = cache.makeRoot()
    const use = (token: number): boolean => {
      const sequence = cache.begin(root, Int32Array.of(token), 1)
      cache.reuse(sequence)
      const wasThere = sequence.length === 1
      if (!wasThere) {
        cache.extend(sequence, 1)
        cache.fill(sequence, 1)
      }
      cache.release(sequence)
      return wasThere
    }
    assert.deepStrictEqual([1, 2, 3, 1, 4].map(use), [false, false, false, true, false])
    assert.deepStrictEqual([1, 3, 4].map(use), [true, true, true])
    assert.isFalse(use(2))
  })
})

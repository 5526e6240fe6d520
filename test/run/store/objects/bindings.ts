import type { Bucket, Namespace } from "../../../../src/run/store/objects/edgeStores.ts"

/** Copies bytes into a buffer of their own, as a store at the other end of a connection does. */
const copied = (bytes: Uint8Array): ArrayBuffer => Uint8Array.from(bytes).buffer

/** The keys of one page of a listing: at most two, so that tests meet several pages. */
const pageOf = (keys: Iterable<string>, { prefix, cursor = "" }: { prefix: string; cursor?: string }) => {
  const after = [...keys].filter((key) => key.startsWith(prefix) && key > cursor).sort()
  const page = after.slice(0, 2)
  return { page, isLast: after.length <= 2, cursor: page.at(-1) ?? "" }
}

/** A bucket as the engine of an edge worker binds it, in memory. It refuses to grow beyond `most` bytes. */
export const bucketOf = (objects = new Map<string, ArrayBuffer>(), most = Infinity): Bucket => ({
  get: async (key) => {
    const buffer = objects.get(key)
    return buffer === undefined ? null : { arrayBuffer: async () => copied(new Uint8Array(buffer)) }
  },
  put: async (key, bytes) => {
    const used = [...objects].reduce((sum, [other, buffer]) => sum + (other === key ? 0 : buffer.byteLength), 0)
    if (used + bytes.length > most) throw new Error("put: the bucket is full (10001)")
    objects.set(key, copied(bytes))
  },
  delete: async (key) => objects.delete(key),
  list: async (listing) => {
    const { page, isLast, cursor } = pageOf(objects.keys(), listing)
    return { objects: page.map((key) => ({ key })), ...(isLast ? { truncated: false } : { truncated: true, cursor }) }
  },
})

/** A namespace of a key-value store as the engine of an edge worker binds it, in memory. */
export const namespaceOf = (objects = new Map<string, ArrayBuffer>()): Namespace => ({
  get: async (key) => {
    const buffer = objects.get(key)
    return buffer === undefined ? null : copied(new Uint8Array(buffer))
  },
  put: async (key, bytes) => objects.set(key, copied(bytes)),
  delete: async (key) => objects.delete(key),
  list: async (listing) => {
    const { page, isLast, cursor } = pageOf(objects.keys(), listing)
    const keys = page.map((name) => ({ name }))
    return isLast ? { keys, list_complete: true } : { keys, list_complete: false, cursor }
  },
})

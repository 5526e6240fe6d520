/**
 * Reads the zip archives that `torch.save` writes: entries stored without compression. It refuses compressed entries, so that no
 * file takes more memory here than on disk.
 *
 * @example
 * ```ts
 * const entries = readStoredZip(bytes)
 * entries.get("archive/data.pkl") // a part of `bytes`, not a copy
 * ```
 */
import { crc32 } from "../crc.ts"
import { zipEntries } from "../zip/directory.ts"
import { refuse } from "./refuse.ts"

/** Returns the contents of the entries by name, as views of `bytes`. Throws a `FormatError`. */
export const readStoredZip = (bytes: Uint8Array): ReadonlyMap<string, Uint8Array> => {
  const entries = new Map<string, Uint8Array>()
  for (const { name, method, size, crc, stored, offset } of zipEntries(bytes)) {
    if (method !== 0)
      refuse(`"${name}" is compressed (method ${method}); torch.save writes its files uncompressed`, offset)
    if (stored.length !== size) refuse(`"${name}" has ${size} bytes, of which ${stored.length} are stored`, offset)
    if (entries.has(name)) refuse(`the archive has "${name}" twice`, offset)
    // Torch can omit the checksum, which is then 0.
    if (crc !== 0 && crc32(stored) !== crc) refuse(`the contents of "${name}" do not match their CRC-32`, offset)
    entries.set(name, stored)
  }
  return entries
}

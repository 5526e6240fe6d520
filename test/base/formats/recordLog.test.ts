import { createHash } from "node:crypto"
import { assert, describe, it } from "vitest"
import { ByteWriter } from "../../../src/base/formats/ByteWriter.ts"
import { writeLogHeader, writeLogRecord } from "../../../src/base/formats/recordLog.ts"
import { recordsIn } from "../../rl/export/wandbLog.ts"

/** The contents of a test's record. */
const contents = (size: number, index: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, at) => (index * 31 + at * 7) % 251)

const logOf = (sizes: ReadonlyArray<number>): Uint8Array => {
  const log = new ByteWriter()
  writeLogHeader(log)
  sizes.forEach((size, index) => writeLogRecord(log, contents(size, index)))
  return log.written
}

/** The length and the SHA-256 of the file that `wandb.sdk.internal.datastore.DataStore` writes for records of these sizes. */
const recorded = [
  { title: "one record", sizes: [1], length: 15, digest: "475ec904388c5e7a" },
  { title: "a record that fills the first block", sizes: [32754, 1], length: 32776, digest: "094e8ff898ed9520" },
  { title: "room for no byte of a record", sizes: [32747, 40], length: 32815, digest: "3f95ac207b01a522" },
  { title: "six bytes that are too few", sizes: [32748, 5], length: 32780, digest: "5543c6c390bde98d" },
  { title: "one byte that is too few", sizes: [32753, 5], length: 32780, digest: "f92e1ddbfab58ec2" },
  { title: "records over several blocks", sizes: [100000, 3, 65536, 7], length: 165616, digest: "70d8da2cfcefbfd4" },
]

describe("a log of records", () => {
  for (const { title, sizes, length, digest } of recorded) {
    it(`has the bytes that W&B's own writer writes: ${title}`, () => {
      const log = logOf(sizes)
      assert.strictEqual(log.length, length)
      assert.strictEqual(createHash("sha256").update(log).digest("hex").slice(0, 16), digest)
      assert.deepEqual(
        recordsIn(log).records.map((record) => [...record]),
        sizes.map((size, index) => [...contents(size, index)]),
      )
    })
  }

  it("divides a record into chunks at the ends of blocks", () => {
    assert.deepEqual(recordsIn(logOf([32747, 40])).chunks, [1, 2, 4])
    assert.deepEqual(recordsIn(logOf([100000])).chunks, [2, 3, 3, 4])
  })
})

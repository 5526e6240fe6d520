/**
 * Makes the page "Cluster": the workers and what each is doing, the clients that wait for jobs, the queue by kind of job, the
 * jobs that were started more than once, and the last failures. It reads this data every second while it is shown.
 */
import { fetchCluster } from "../data.js"
import { el, factList, rowsIn, tableOf } from "../parts/dom.js"
import { counted, duration, number } from "../parts/format.js"

/** The milliseconds between an answer and the next request. */
const pause = 1000

/**
 * The number of seconds after which a process that has not renewed its row is shown as silent: it may be frozen or
 * disconnected.
 */
const silentSeconds = 5

/** The largest number of jobs that are shown for a worker or a client. */
const mostJobs = 8

const seconds = (value) => duration(Math.round(value))
const ago = (value) => (value < 2 ? "now" : `${seconds(value)} ago`)
const plain = (name) => el("th", { scope: "col" }, name)
const numeric = (name) => el("th.number", { scope: "col" }, name)
const cell = (value) => el("td.number", number(value))

export const makeClusterPage = () => {
  const status = el("p.line", { role: "status" }, "Reading the cluster …")
  const problem = el("p.problem", { role: "alert" })
  const facts = el("div")
  const workers = section("Workers", [plain("worker"), plain("state"), plain("doing"), numeric("slots"), numeric("jobs done"), plain("since"), plain("sign of life")], "No worker has joined: npx effect worker --join postgres://… adds one.") // prettier-ignore
  const clients = section("Clients", [plain("client"), numeric("waits for"), plain("jobs"), numeric("answers"), plain("since"), plain("sign of life")], "No client waits for jobs.") // prettier-ignore
  const kinds = section("Jobs", [plain("kind"), numeric("waiting"), numeric("under way"), numeric("done"), numeric("failed")], "There were no jobs yet.") // prettier-ignore
  const repeated = section("Taken more than once", [plain("job"), numeric("times"), plain("state")], "No job was.")
  const failures = section("Last failures", [plain("job"), plain("reason"), plain("worker"), plain("when")], "None.")
  const content = el("div", { hidden: true }, facts, workers.element, clients.element, kinds.element, repeated.element, failures.element) // prettier-ignore
  const element = el("article.cluster", el("h1", "Cluster"), status, problem, content)

  const show = ({ database, problem: reason, overview, age }) => {
    element.dataset.state = reason === null ? "connected" : "gone"
    const last = overview === null ? "." : `; this page shows what it said ${seconds(age)} ago. Jobs that are under way continue.` // prettier-ignore
    status.textContent = reason === null ? `${database} answers.` : ""
    problem.textContent = reason === null ? "" : `${database} does not answer (${reason})${last}`
    content.hidden = overview === null
    if (overview === null) return
    const of = (role) => overview.members.filter((one) => one.role === role)
    facts.replaceChildren(factsOf(of("worker"), overview.kinds))
    workers.show(of("worker").map((one) => ({ key: one.id, content: [one, age], make: () => workerRow(one, age) })))
    clients.show(of("client").map((one) => ({ key: one.id, content: [one, age], make: () => clientRow(one, age) })))
    kinds.show(
      overview.kinds.map((one) => ({
        key: one.kind,
        content: one,
        make: () =>
          el("tr", el("td.name", el("b", one.kind)), [one.waiting, one.underWay, one.done, one.failed].map(cell)),
      })),
    )
    const states = { waiting: "waiting", underWay: "under way", ended: "ended" }
    repeated.show(
      overview.repeated.map((one) => ({
        key: one.key,
        content: one,
        make: () => el("tr", el("td.name", one.key), cell(one.times), el("td", states[one.state])),
      })),
    )
    failures.show(
      overview.failures.map((one, place) => ({
        key: `${place} ${one.key}`,
        content: [one, Math.round(one.age + age)],
        make: () =>
          el("tr", el("td.name", one.key), el("td.name.problem", one.message), el("td", one.worker), el("td", ago(one.age + age))), // prettier-ignore
      })),
    )
  }

  let timer
  let isClosed = false
  const read = async () => {
    await fetchCluster().then(show, (error) => {
      element.dataset.state = "unread"
      problem.textContent =
        error.status === 404 ? "This server shows no cluster: start it with effect ui --cluster postgres://…" : `The server of this page does not answer: ${error.message}` // prettier-ignore
      status.textContent = ""
    })
    if (!isClosed) timer = setTimeout(read, pause)
  }

  return {
    element,
    update: () => void read(),
    restore: () => {},
    draw: () => {},
    changed: () => {},
    close: () => {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

/** Makes the facts about the whole cluster: all workers and jobs together. */
const factsOf = (workers, kinds) => {
  const sum = (name) => kinds.reduce((total, kind) => total + kind[name], 0)
  const slots = workers.reduce((total, one) => total + one.slots, 0)
  const busy = workers.reduce((total, one) => total + one.busy, 0)
  return factList([
    ["workers", number(workers.length)],
    ["busy slots", `${number(busy)} of ${number(slots)}`],
    ["waiting jobs", number(sum("waiting"))],
    ["jobs under way", number(sum("underWay"))],
    ["jobs done", number(sum("done"))],
    ["failed jobs", number(sum("failed"))],
  ])
}

/**
 * Makes a card with a table. Its function `show` fills the table with rows for `rowsIn`; without rows, it shows the text
 * `nothing`.
 */
const section = (title, headings, nothing) => {
  const body = el("tbody")
  const fill = rowsIn(body)
  const table = tableOf(title, el("thead", el("tr", headings)), body)
  const empty = el("p.quiet", nothing)
  return {
    element: el("section.card", el("h2", title), table, empty),
    show: (rows) => {
      fill(rows)
      table.hidden = rows.length === 0
      empty.hidden = rows.length > 0
    },
  }
}

const workerRow = (one, age) => {
  const silent = one.age + age
  const state = silent > silentSeconds ? "silent" : one.busy > 0 ? "running" : "idle"
  return el(
    "tr",
    el("td.name", el("b", one.name), el("p.quiet.line", `${one.address}, version ${one.version}`)),
    el("td", el("span", { class: `badge ${state}` }, state)),
    el("td.name", jobList(one, age)),
    el("td.number", `${number(one.busy)} of ${number(one.slots)}`),
    cell(one.finished),
    el("td", ago(one.joined + age)),
    el("td", ago(silent)),
  )
}

const clientRow = (one, age) =>
  el(
    "tr",
    el("td.name", el("b", one.name), el("p.quiet.line", `version ${one.version}`)),
    el("td.number", counted(one.busy, "job")),
    el("td.name", jobList(one, age)),
    cell(one.finished),
    el("td", ago(one.joined + age)),
    el("td", ago(one.age + age)),
  )

/** Lists the jobs of a process, each with the time since it was started. */
const jobList = (one, age) => {
  const more = one.busy - Math.min(mostJobs, one.jobs.length)
  return el(
    "ul",
    one.jobs
      .slice(0, mostJobs)
      .map((job) =>
        el("li", el("span.job", job.key), el("span.quiet", ` for ${seconds(job.seconds + one.age + age)}`)),
      ),
    more > 0 && el("li.quiet", `and ${number(more)} more`),
  )
}

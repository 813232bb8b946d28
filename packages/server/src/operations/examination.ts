import type { Examination, Finding } from '../administration/finding.ts'
import type { Hub } from '../hub/hub.ts'
import type { Services } from '../services.ts'
import { checkHealth } from './health.ts'

/** Loads the checks on first use, since few start-ups need them. */
export function createExamination(services: Services, hub: Hub): Examination {
  const load = () => import('./doctor.ts')
  let runningChecks: Promise<Finding[]> | undefined
  return {
    async quick() {
      const { examineQuickly } = await load()
      return examineQuickly(services, () => checkHealth(services, hub))
    },
    whole() {
      runningChecks ??= load()
        .then(({ examineAll }) => examineAll(services))
        .finally(() => {
          runningChecks = undefined
        })
      return runningChecks
    },
  }
}

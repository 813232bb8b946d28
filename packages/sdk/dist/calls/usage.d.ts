/** The range of a usage report; by default the last 30 days, or with `bucket: 'hour'` the last 24 hours. */
export interface UsageRange {
    /** Default `day`. Hours are kept for 90 days, days for 400. */
    bucket?: 'hour' | 'day' | undefined;
    /** RFC 3339 with a zone. The first bucket is the one that contains it. */
    from?: string | undefined;
    /** RFC 3339 with a zone, exclusive; a bucket that starts before it is reported as a whole. Default: now. */
    to?: string | undefined;
}
export declare function usageQuery({ bucket, from, to }: UsageRange): Record<string, string | undefined>;

-- The two schemas that hold everything. Nothing of ours is ever in public.

--@ schema queen
CREATE SCHEMA IF NOT EXISTS queen;

--@ schema queen_streams
CREATE SCHEMA IF NOT EXISTS queen_streams;
